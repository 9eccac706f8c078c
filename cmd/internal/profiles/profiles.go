// Package profiles knows how common exports of catalogs call their columns, as settings that stand below those of a
// configuration file and of the command line.
package profiles

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/internal/suggest"
)

//go:embed *.yaml
var files embed.FS

// Profile is one kind of export.
type Profile struct {
	Name string `json:"name"`
	// About says what the profile is for.
	About string `json:"about"`
	// Source is the page that describes the columns.
	Source string `json:"source"`
	// Read says how its files are read, besides what they say themselves.
	Read backfill.ReadOptions `json:"read"`
}

// all are the profiles, in the order in which they are shown.
var all = []Profile{
	{Name: "shopify", About: "products and orders exported from Shopify (CSV)",
		Source: "https://help.shopify.com/en/manual/products/import-export/using-csv",
		Read:   backfill.ReadOptions{ListSeparator: ";", SkipWithoutText: true}},
	{Name: "woocommerce", About: "products exported from WooCommerce (CSV), orders of its REST API (JSON)",
		Source: "https://github.com/woocommerce/woocommerce/wiki/Product-CSV-Import-Schema",
		Read:   backfill.ReadOptions{ListSeparator: ",", SkipWithoutText: true}},
	{Name: "magento", About: "products exported from Adobe Commerce or Magento 2 (CSV), orders of its REST API (JSON)",
		Source: "https://experienceleague.adobe.com/en/docs/commerce-admin/systems/" +
			"data-transfer/data-attributes-product",
		Read: backfill.ReadOptions{ListSeparator: ",", SkipWithoutText: true}},
	{Name: "google-merchant", About: "a product feed of Google Merchant Center (TSV or CSV)",
		Source: "https://support.google.com/merchants/answer/7052112"},
	{Name: "amazon-reviews", About: "product metadata of Amazon Reviews 2018 (JSON lines)",
		Source: "https://cseweb.ucsd.edu/~jmcauley/datasets/amazon_v2/"},
	{Name: "amazon-reviews-2023", About: "item metadata of Amazon Reviews 2023 (JSON lines)",
		Source: "https://amazon-reviews-2023.github.io/"},
}

// List returns all profiles.
func List() []Profile { return slices.Clone(all) }

// Names returns their names.
func Names() []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// Find returns the profile of a name.
func Find(name string) (*Profile, error) {
	for _, p := range all {
		if p.Name == name {
			return &p, nil
		}
	}
	hint := ""
	if near := suggest.Nearest(name, Names()); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return nil, fmt.Errorf("no profile is named %q%s; they are %s", name, hint, strings.Join(Names(), ", "))
}

// YAML returns the profile's settings as a part of a configuration file, with comments.
func (p *Profile) YAML() []byte {
	data, err := files.ReadFile(p.Name + ".yaml")
	if err != nil {
		panic(err) // a test reads all of them
	}
	return data
}

// ApplyTo returns a configuration with the profile's settings in place of its own.
func (p *Profile) ApplyTo(c *config.Config) (config.Config, error) { return c.Overlay(p.YAML()) }

// Gives reports whether a configuration has a field of the mapping, such as nodes.class, from the profile: exports lack
// some of the columns.
func (p *Profile) Gives(c *config.Config, field string) bool {
	own, err := p.ApplyTo(new(config.Default()))
	if err != nil {
		return false
	}
	for i, f := range own.Fields() {
		if f.Path == "ingest."+field {
			return f.Value == c.Fields()[i].Value
		}
	}
	return false
}
