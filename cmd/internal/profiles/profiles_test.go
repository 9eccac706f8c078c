package profiles_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/pipelinetest"
	"giantstream/cmd/internal/profiles"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// Every profile is a valid part of a configuration, is found by its name, and names the page of its source. Files and
// names belong together.
func TestProfilesAreConfigurations(t *testing.T) {
	for _, p := range profiles.List() {
		found, err := profiles.Find(p.Name)
		if err != nil || found.Name != p.Name {
			t.Errorf("%s: %v, %v", p.Name, found, err)
		}
		c, err := p.ApplyTo(new(config.Default()))
		if err == nil {
			err = wiring.Check(&c)
		}
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if !strings.Contains(string(p.YAML()), p.Source) {
			t.Errorf("%s.yaml does not name %s", p.Name, p.Source)
		}
		for _, change := range config.Diff(new(config.Default()), &c) {
			if !strings.HasPrefix(change.Path, "ingest.") {
				t.Errorf("%s sets %s, which is no concern of an export", p.Name, change.Path)
			}
		}
	}
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.Contains(profiles.Names(), strings.TrimSuffix(name, ".yaml")) {
			t.Errorf("%s belongs to no profile", name)
		}
	}
	if _, err := profiles.Find("shopfy"); err == nil || !strings.Contains(err.Error(), "did you mean shopify?") {
		t.Error(err)
	}
}

// Orders as each shop has them become what is bought together.
func TestProfilesMapOrders(t *testing.T) {
	for name, record := range map[string]string{
		"shopify": `{"Name": "#1001", "Email": "a@example.com", "Created at": "2026-01-02 05:04:05 -0500",
			"Lineitem quantity": "2", "Lineitem name": "Pen - red", "Lineitem sku": "PEN"}`,
		"woocommerce": `{"id": 727, "status": "processing", "date_created_gmt": "2026-01-02T10:04:05",
			"date_modified_gmt": "2026-01-02T10:04:05", "line_items": [{"id": 315, "sku": "PEN", "quantity": 2}]}`,
		"magento": `{"increment_id": "000000001", "state": "new", "created_at": "2026-01-02 10:04:05",
			"updated_at": "2026-01-02 10:04:05", "items": [{"sku": "PEN", "qty_ordered": 2}]}`,
	} {
		p, err := profiles.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		c.Ingest.Baskets.Topic = "orders"
		if c, err = p.ApplyTo(&c); err != nil {
			t.Fatal(err)
		}
		mapping, limits := wiring.MappingOf(&c)
		d, err := decode.Orders(mapping.Orders["orders"], mutation.Further, limits, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, fault := d.Decode(decode.Record{Value: []byte(record), Time: time.Unix(1, 0)}, nil)
		if fault != nil || len(got) != 1 || got[0].Order == nil {
			t.Errorf("%s: %+v, %v", name, got, fault)
			continue
		}
		placed := time.Date(2026, 1, 2, 10, 4, 5, 0, time.UTC).UnixMicro()
		if o := got[0].Order; o.Time != placed || !slices.Equal(o.Lines, []mutation.Line{{Item: "PEN", Quantity: 2}}) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// Records as each export has them become what testdata says.
func TestProfilesMapTheirExports(t *testing.T) {
	for _, name := range profiles.Names() {
		path := filepath.Join("testdata", name+".test.yaml")
		if _, err := os.Stat(path); err != nil {
			t.Errorf("no test of %s: %v", name, err)
			continue
		}
		f, err := pipelinetest.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Profile != name {
			t.Errorf("%s tests %s", path, f.Profile)
		}
		results, err := pipelinetest.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			for _, d := range r.Differences {
				t.Errorf("%s: %s:\n- %s\n+ %s", name, r.Name, d.Want, d.Got)
			}
		}
	}
}
