// Package icebergsink opens a table of Apache Iceberg as the configuration names it: the catalog, the files, and an
// index of the rows in a temporary folder.
package icebergsink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/apache/iceberg-go/catalog/rest"

	"giantstream/cmd/internal/sinks"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/iceberg"
	"giantstream/sink/vectordb"
)

// Kind is the kind of database.
var Kind = sinks.Kind{Name: "iceberg", Title: "a table of Apache Iceberg", Field: "sinks.iceberg.uri", Connect: connect,
	Rows: followRows, Rid: "let 'giantstream-iceberg run --until-caught-up', and 'rows --until-caught-up' " +
		"for the table of rows, apply the deletions; then rewrite the data files and expire the snapshots " +
		"(docs/ICEBERG.md, Maintenance)"}

// answerTime bounds a request to the catalog.
const answerTime = 2 * time.Minute

func connect(cfg *config.Config, log *slog.Logger) (vectordb.Index, error) {
	places, err := openPlaces()
	if err != nil {
		return nil, err
	}
	o, err := options(cfg, cfg.Sinks.Name, places, log)
	if err != nil {
		return nil, errors.Join(err, places.Close())
	}
	o.Attributes = wiring.SinkAttributes(cfg) // the table of rows has none
	x := iceberg.New(o)
	tables := []remaining{{strings.Join(o.Table, "."), x.Remaining}}
	if o, err = options(cfg, cfg.Sinks.Iceberg.Rows, places, log); err != nil {
		return nil, errors.Join(err, places.Close())
	}
	tables = append(tables, remaining{strings.Join(o.Table, "."), iceberg.NewRows(o).Remaining})
	return &owner{x, places, tables}, nil
}

// options are those of the table that the configuration calls name.
func options(cfg *config.Config, name string, places iceberg.Places, log *slog.Logger) (o iceberg.Options, err error) {
	c := cfg.Sinks.Iceberg
	tls, err := wiring.TLS("sinks.iceberg", c.CAFile)
	if err != nil {
		return o, err
	}
	return iceberg.Options{
		Table: append(strings.Split(c.Namespace, "."), name), Location: strings.TrimRight(c.Location, "/"),
		Catalog: func(ctx context.Context) (iceberg.Catalog, error) {
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.TLSClientConfig, transport.ResponseHeaderTimeout = tls, answerTime
			opts := []rest.Option{rest.WithCustomTransport(discreet{transport,
				[]string{string(c.Token), string(c.Password)}})}
			if c.Warehouse != "" {
				opts = append(opts, rest.WithWarehouseLocation(c.Warehouse))
			}
			if c.Token != "" {
				opts = append(opts, rest.WithOAuthToken(string(c.Token)))
			}
			if c.ClientID != "" {
				opts = append(opts, rest.WithCredential(c.ClientID+":"+string(c.Password)))
			}
			if c.Scope != "" {
				opts = append(opts, rest.WithScope(c.Scope))
			}
			catalog, err := rest.NewCatalog(ctx, "giantstream", strings.TrimRight(c.URI, "/"), opts...)
			if err != nil {
				return nil, err // not a nil *rest.Catalog in an interface
			}
			return catalog, nil
		},
		Store: func(ctx context.Context, location string) (sink.Store, error) {
			at := *cfg
			at.Store = storeURL(location)
			return wiring.OpenStore(ctx, &at)
		},
		Places: places, Every: c.CommitInterval, Bytes: int64(c.CommitBytes), Log: log,
	}, nil
}

// storeURL is a table's location as the address of a store. Engines write file:/a and s3a:// too.
func storeURL(location string) string {
	switch scheme, rest, _ := strings.Cut(location, ":"); scheme {
	case "file":
		return "file:///" + strings.TrimLeft(rest, "/")
	case "s3a", "s3n":
		return "s3:" + rest
	}
	return location
}

// owner is an index that removes its places at the end.
type owner struct {
	*iceberg.Index
	places *places
	tables []remaining
}

// remaining is a table that may have something of nodes that are to be forgotten.
type remaining struct {
	name string
	left func(context.Context, []string) (map[string]int, error)
}

// Remaining implements vectordb.Index, for the table of rows as well.
func (o *owner) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	all := map[string]int{}
	for _, t := range o.tables {
		left, err := t.left(ctx, nodes)
		if err != nil {
			return nil, fmt.Errorf("look into %s: %w", t.name, err)
		}
		for place, n := range left {
			all[t.name+", "+place] = n
		}
	}
	return all, nil
}

// Close implements vectordb.Index.
func (o *owner) Close() error { return o.places.Close() }
