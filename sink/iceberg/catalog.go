package iceberg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink/vectordb"
)

// Catalog is what is asked of a catalog; *rest.Catalog is one.
type Catalog interface {
	CreateNamespace(ctx context.Context, namespace table.Identifier, props iceberg.Properties) error
	CreateTable(ctx context.Context, ident table.Identifier, schema *iceberg.Schema, opts ...catalog.CreateTableOpt) (
		*table.Table, error)
	LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error)
	CommitTable(ctx context.Context, ident table.Identifier, requirements []table.Requirement, updates []table.Update) (
		table.Metadata, string, error)
}

// load returns the table, which it makes if need be.
func (x *Index) load(ctx context.Context) (table.Metadata, error) {
	t, err := x.catalog.LoadTable(ctx, x.opts.Table)
	if !errors.Is(err, catalog.ErrNoSuchTable) && !errors.Is(err, catalog.ErrNoSuchNamespace) {
		if err != nil {
			return nil, classify(err)
		}
		return t.Metadata(), nil
	}
	err = x.catalog.CreateNamespace(ctx, x.opts.Table[:len(x.opts.Table)-1], nil)
	if err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		return nil, classify(fmt.Errorf("create the namespace: %w", err))
	}
	opts := []catalog.CreateTableOpt{catalog.WithProperties(iceberg.Properties{
		"format-version": "2", "write.parquet.compression-codec": "zstd",
		"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read", "write.merge.mode": "merge-on-read",
		"comment": x.kind.comment})}
	if x.opts.Location != "" {
		opts = append(opts, catalog.WithLocation(x.opts.Location))
	}
	schema := x.kind.schema()
	first := iceberg.NewSchemaWithIdentifiers(0, schema.IdentifierFieldIDs,
		schema.Fields()[:schema.NumFields()-x.kind.added]...)
	t, err = x.catalog.CreateTable(ctx, x.opts.Table, first, opts...)
	if err != nil {
		return nil, classify(fmt.Errorf("create the table: %w", err)) // one that another has made is found next time
	}
	return t.Metadata(), nil
}

// evolve adds the optional columns that a table lacks, because it is new or of an earlier release, or attributes are.
// Its files stay as they are.
func (x *Index) evolve(ctx context.Context, meta table.Metadata) (table.Metadata, error) {
	now := meta.CurrentSchema()
	fields := slices.Clone(now.Fields())
	for _, w := range x.kind.schema().Fields() {
		if _, ok := now.FindFieldByName(w.Name); ok || w.Required {
			continue // check looks at it
		}
		if w.ID <= meta.LastColumnID() && len(fields) == now.NumFields() {
			return nil, fmt.Errorf("%w: the table lacks the column %s, and others have been added to it meanwhile. "+
				"Name a table that does not exist, and it is made", vectordb.ErrRefused, w.Name)
		}
		fields = append(fields, w)
	}
	id := meta.LastColumnID()
	for _, a := range x.opts.Attributes {
		if _, ok := now.FindFieldByName(a.Name); ok {
			continue // findColumns looks at it
		}
		for _, f := range fields {
			if strings.EqualFold(f.Name, a.Name) {
				return nil, fmt.Errorf("%w: the table has a column %s, and DuckDB and Spark do not tell it from the "+
					"attribute %s: give the attribute another name", vectordb.ErrRefused, f.Name, a.Name)
			}
		}
		f := iceberg.NestedField{ID: id + 1, Name: a.Name, Type: typeOf(a.Type, id+2)}
		fields = append(fields, f)
		if id++; a.Type == vectordb.Strings {
			id++
		}
	}
	if len(fields) == now.NumFields() {
		return meta, nil
	}
	schema := iceberg.NewSchemaWithIdentifiers(now.ID+1, now.IdentifierFieldIDs, fields...)
	meta, _, err := x.catalog.CommitTable(ctx, x.opts.Table, []table.Requirement{
		table.AssertTableUUID(meta.TableUUID()), table.AssertCurrentSchemaID(now.ID),
		table.AssertLastAssignedFieldID(meta.LastColumnID())},
		[]table.Update{table.NewAddSchemaUpdate(schema), table.NewSetCurrentSchemaUpdate(-1)})
	if err != nil {
		return nil, classify(fmt.Errorf("add columns to the table: %w", err))
	}
	return meta, nil
}

// check says why a table cannot be written.
func (k *kind) check(meta table.Metadata) error {
	want, got := k.schema(), meta.CurrentSchema()
	if meta.Version() != 2 {
		return fmt.Errorf("%w: the table has the format version %d; giantstream-iceberg writes version 2",
			vectordb.ErrRefused, meta.Version())
	}
	if !meta.PartitionSpec().IsUnpartitioned() {
		return fmt.Errorf("%w: the table is partitioned; giantstream-iceberg writes tables without partitions",
			vectordb.ErrRefused)
	}
	for _, w := range want.Fields() {
		g, ok := got.FindFieldByName(w.Name)
		if !ok || g.ID != w.ID || !g.Type.Equals(w.Type) {
			return fmt.Errorf("%w: the column %s of the table is not the one that giantstream-iceberg makes (%v). "+
				"Name a table that does not exist, and it is made", vectordb.ErrRefused, w.Name, w)
		}
	}
	for _, g := range got.Fields() {
		if _, ok := want.FindFieldByName(g.Name); !ok && g.Required {
			return fmt.Errorf("%w: the table has a column %s that must not be null, and that %s knows nothing of",
				vectordb.ErrRefused, g.Name, k.source)
		}
	}
	return nil
}

// classify makes final what the catalog would refuse again.
func classify(err error) error {
	if errors.Is(err, rest.ErrBadRequest) || errors.Is(err, iceberg.ErrNotImplemented) {
		return fmt.Errorf("%w: the catalog says %w", vectordb.ErrRefused, err)
	}
	return err
}
