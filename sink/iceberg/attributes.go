package iceberg

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/vectordb"
)

// column is an attribute, with the field ids that the table gives it.
type column struct {
	vectordb.Attribute
	id, element int
}

// Attributes implements vectordb.Attributed.
func (x *Index) Attributes() []vectordb.Attribute { return x.opts.Attributes }

// typeOf is the type of an attribute's column. element is the field id of a list's elements.
func typeOf(t vectordb.AttributeType, element int) iceberg.Type {
	switch p := iceberg.PrimitiveTypes; t {
	case vectordb.Number:
		return p.Float64
	case vectordb.Boolean:
		return p.Bool
	case vectordb.Time:
		return p.TimestampTz
	case vectordb.Strings:
		return &iceberg.ListType{ElementID: element, Element: p.String, ElementRequired: true}
	}
	return iceberg.PrimitiveTypes.String
}

// findColumns finds the columns of the attributes, and makes the kind one that writes them.
func (x *Index) findColumns(meta table.Metadata) error {
	x.columns = nil
	schema := meta.CurrentSchema()
	for _, a := range x.opts.Attributes {
		f, _ := schema.FindFieldByName(a.Name) // evolve has added it
		c := column{Attribute: a, id: f.ID}
		if list, ok := f.Type.(*iceberg.ListType); ok {
			c.element = list.ElementID
		}
		if want := typeOf(a.Type, c.element); f.Required || !want.Equals(f.Type) {
			return fmt.Errorf("%w: the column %s of the table is %s, and the attribute is a %s, which is %s. Drop the "+
				"column, or give the attribute another name; 'giantstream-iceberg refill' then fills it",
				vectordb.ErrRefused, a.Name, f.Type, a.Type, want)
		}
		x.columns = append(x.columns, c)
	}
	if len(x.columns) > 0 {
		k := *x.kind
		k.put = putter(formatWith(x.columns))
		x.kind = &k
	}
	return nil
}

// formatWith is the format of data files with attributes.
func formatWith(columns []column) parquetio.Format[row] {
	format := embeddingFormat
	format.Size = func(r *row) int { return embeddingFormat.Size(r) + sizeOf(r.attributes) }
	for i, c := range columns {
		format.Further = append(format.Further, parquetio.Further[row]{Name: c.Name, ID: c.id, Element: c.element,
			Of: sample(c.Type), Value: func(r *row) any {
				if i < len(r.attributes) {
					return r.attributes[i]
				}
				return nil
			}})
	}
	return format
}

// sample is a value of an attribute.
func sample(t vectordb.AttributeType) any {
	switch t {
	case vectordb.Number:
		return 0.0
	case vectordb.Boolean:
		return false
	case vectordb.Time:
		return time.Time{}
	case vectordb.Strings:
		return []string{}
	}
	return ""
}

// sizeOf estimates what attributes take.
func sizeOf(attributes []any) int {
	n := 16 * len(attributes)
	for _, v := range attributes {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []string:
			for _, s := range v {
				n += 16 + len(s)
			}
		}
	}
	return n
}

// attributesOf returns what a record of attributes does to its node. The row's vector counts: it is in memory when the
// change is committed.
func attributesOf(r *vectordb.Record, dim int) *change {
	return &change{node: r.NodeID, attributes: r.Values, bytes: int64(len(r.NodeID) + 4*dim + 200 + sizeOf(r.Values))}
}

// mergedWith returns what a change and the one before it do together: a row that gets another vector keeps its
// attributes, and the other way round.
func (c *change) mergedWith(old *change) *change {
	switch {
	case c.deleted, c.row != nil && c.attributes != nil, c.row == nil && old.row == nil && !old.deleted:
		return c
	case c.row == nil && old.deleted:
		return old
	case c.row == nil:
		n := *old
		n.attributes = c.attributes
		n.bytes += int64(sizeOf(n.attributes) - sizeOf(old.attributes))
		return &n
	}
	n := *c
	if n.attributes = old.attributes; old.deleted {
		n.attributes = []any{} // and not those of the row that was there before
	}
	n.bytes += int64(sizeOf(n.attributes))
	return &n
}

// complete returns the changes with whole rows: with the vectors and the attributes that they keep, from the data files
// that have them. Attributes of nodes without a row are left out.
func (x *Index) complete(ctx context.Context, serial int64, changes []*change) ([]*change, error) {
	if len(x.columns) == 0 {
		return changes, nil
	}
	out := make([]*change, 0, len(changes))
	files := map[uint32][]kept{}
	for _, c := range changes {
		if c.deleted {
			out = append(out, c)
			continue
		}
		n := *c
		if c.row == nil || c.attributes == nil {
			p, ok, err := x.opts.Places.Get(serial, c.node)
			if err != nil {
				return nil, err
			}
			if ok {
				files[p.File] = append(files[p.File], kept{int64(p.Row), &n})
			} else if c.row == nil {
				continue
			}
		}
		out = append(out, &n)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := x.keep(ctx, x.paths[file], files[file]); err != nil {
			return nil, err
		}
	}
	for _, c := range out {
		if !c.deleted {
			r := *c.row.(*row)
			r.attributes = c.attributes
			c.row = &r
		}
	}
	return out, nil
}

// kept is a row of a data file of which a change keeps something.
type kept struct {
	row int64
	by  *change
}

// keep gives changes what they keep of the rows of a file.
func (x *Index) keep(ctx context.Context, path string, all []kept) error {
	slices.SortFunc(all, func(k, l kept) int { return cmp.Compare(k.row, l.row) })
	wanted := make([]int64, len(all))
	for i, k := range all {
		wanted[i] = k.row
	}
	at := 0
	for r, err := range readObject(ctx, x, path, func(o sink.Object) iter.Seq2[row, error] {
		return parquetio.ReadRows(o, o.Size(), x.kind.format, x.rowColumns(), wanted)
	}) {
		if err != nil {
			return err
		}
		c := all[at].by
		if at++; r.NodeID != c.node {
			return fmt.Errorf("%w: row %d of %s is of %q, not %q", vectordb.ErrRefused, all[at-1].row, path, r.NodeID,
				c.node)
		}
		if c.attributes == nil {
			c.attributes = r.attributes
			continue
		}
		r.Embedding = slices.Clone(r.Embedding) // it shares its memory with those of other rows
		c.row, c.version = &r, r.Offset
	}
	if at < len(all) {
		return fmt.Errorf("%w: %s has no row %d", vectordb.ErrRefused, path, all[at].row)
	}
	return nil
}

// rowColumns are those of data files. Attributes are found by their ids: what compacts a table may write the names of
// columns in another way, and an attribute may have got a column anew.
func (x *Index) rowColumns() []parquetio.Column[row] {
	all := []parquetio.Column[row]{
		parquetio.Scalar("node_id", parquetio.String(), func(r *row, v string) { r.NodeID = v }),
		parquetio.Scalar("generation", parquetio.Int64(), func(r *row, v int64) { r.Generation = v }),
		parquetio.Scalar("space", parquetio.Int64(), func(r *row, v int64) { r.Space = v }),
		parquetio.Scalar("status", parquetio.String(), func(r *row, v string) { r.Status = v }),
		parquetio.Scalar("event_time", parquetio.Int64(), func(r *row, v int64) { r.EventTime = v }),
		parquetio.Scalar("shard", parquetio.Int32(), func(r *row, v int32) { r.Shard = v }),
		parquetio.Scalar("seq", parquetio.Int64(), func(r *row, v int64) { r.Seq = v }),
		parquetio.Scalar("kafka_partition", parquetio.Int32(), func(r *row, v int32) { r.Partition = v }),
		parquetio.Scalar("kafka_offset", parquetio.Int64(), func(r *row, v int64) { r.Offset = v }),
		parquetio.List("embedding", parquetio.Float(), func(r *row, v []float32) { r.Embedding = v })}
	for i, c := range x.columns {
		set := func(r *row, v any) {
			if r.attributes == nil {
				r.attributes = make([]any, len(x.columns))
			}
			r.attributes[i] = v
		}
		var read parquetio.Column[row]
		switch c.Type {
		case vectordb.Number:
			read = parquetio.Scalar(c.Name, parquetio.Double(), func(r *row, v float64) { set(r, v) })
		case vectordb.Boolean:
			read = parquetio.Scalar(c.Name, parquetio.Bool(), func(r *row, v bool) { set(r, v) })
		case vectordb.Time:
			read = parquetio.Scalar(c.Name, parquetio.Int64(), func(r *row, v int64) {
				set(r, time.UnixMicro(v).UTC())
			})
		case vectordb.Strings:
			read = parquetio.NullableList(c.Name, parquetio.String(), func(r *row, v []string) {
				set(r, append([]string{}, v...))
			})
		default:
			read = parquetio.Scalar(c.Name, parquetio.String(), func(r *row, v string) { set(r, v) })
		}
		all = append(all, read.WithID(c.id).Optional())
	}
	return all
}
