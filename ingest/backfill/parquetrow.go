package backfill

import (
	"fmt"
	"slices"
	"strings"

	"giantstream/ingest/jsonvalue"
	"giantstream/sink/parquetio"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// parquetField is a field of a file's schema: what makes a JSON value of the values that its leaf
// columns have in a row. Levels are those of Dremel (Melnik et al., VLDB 2010, section 4).
type parquetField struct {
	// label is the field's name as JSON, and a colon.
	label []byte
	shape parquetShape
	// optional and repeated fields have a value where the definition level reaches definition.
	optional, repeated bool
	definition         int
	// repetition is the level at which a further element of a repeated field begins.
	repetition int
	// fields are those of an object, and the only one of a wrapper or a mapping.
	fields []parquetField
	// leaves are the numbers of the leaf columns below, from included and to not; leaf itself is from.
	from, to int
	kind     parquet.Kind // of a leaf's values
	append   parquetAppender
}

// parquetShape is what a field's value is in JSON.
type parquetShape uint8

const (
	shapeLeaf parquetShape = iota
	shapeObject
	// shapeWrapper: the value is that of the only field. LIST has two of them around its elements.
	shapeWrapper
	// shapeMapping: the only field repeats pairs of key and value.
	shapeMapping
)

// parquetLeaf is a leaf column that is read.
type parquetLeaf struct {
	index int // in the file
	path  string
}

// maxParquetDepth bounds the nesting of a schema. The decoder refuses JSON nested deeper than 512.
const maxParquetDepth = 500

// parquetFields returns the fields of the given names, and the leaf columns below them.
func parquetFields(file *parquet.File, names []string) ([]parquetField, []parquetLeaf, error) {
	s := parquetSchema{elements: file.Metadata().Schema[1:]}
	var fields []parquetField
	for _, column := range file.Root().Columns() {
		s.reads = slices.Contains(names, column.Name())
		f, err := s.field(column, nil, 0, 0)
		if err != nil {
			return nil, nil, err
		}
		if s.reads {
			fields = append(fields, f)
		}
	}
	return fields, s.leaves, nil
}

// parquetSchema walks a schema in the order of its elements in the footer, which state types that
// the library's columns do not: FLOAT16, INTERVAL.
type parquetSchema struct {
	elements []pqformat.SchemaElement // not passed yet
	reads    bool                     // the field is mapped
	leaves   []parquetLeaf
}

// field returns a column and the fields below it; the levels are those of the field around it.
func (s *parquetSchema) field(
	c *parquet.Column, path []string, definition, repetition int,
) (f parquetField, err error) {
	if len(s.elements) == 0 || len(path) > maxParquetDepth {
		return f, fmt.Errorf("%w: %d levels of fields", parquetio.ErrSchema, len(path))
	}
	e := &s.elements[0]
	s.elements = s.elements[1:]
	path = append(path, c.Name())
	f = parquetField{optional: c.Optional(), repeated: c.Repeated(), from: len(s.leaves),
		label: append(jsonvalue.AppendString(nil, c.Name()), ':')}
	if f.optional || f.repeated {
		definition++
	}
	if f.repeated {
		repetition++
	}
	f.definition, f.repetition = definition, repetition
	if c.Leaf() {
		if !s.reads {
			return f, nil
		}
		f.kind = c.Type().Kind()
		if f.append, err = parquetAppenderOf(e, f.kind); err != nil {
			return f, fmt.Errorf("column %s: %w", strings.Join(path, "."), err)
		}
		s.leaves = append(s.leaves, parquetLeaf{c.Index(), strings.Join(path, ".")})
		f.to = len(s.leaves)
		return f, nil
	}
	for _, child := range c.Columns() {
		field, err := s.field(child, path, definition, repetition)
		if err != nil {
			return f, err
		}
		f.fields = append(f.fields, field)
	}
	f.to = len(s.leaves)
	f.shape = shapeObject
	if s.reads {
		f.annotate(c, e)
	}
	return f, nil
}

// annotate finds out whether a group is a list or a map. Writers of lists have disagreed on what lies
// between a list and its elements; the rules are those of the format's page on logical types.
// https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#nested-types
func (f *parquetField) annotate(c *parquet.Column, e *pqformat.SchemaElement) {
	if len(f.fields) != 1 || !f.fields[0].repeated {
		return
	}
	inner := &f.fields[0]
	_, list := e.LogicalType.Value.(*pqformat.ListType)
	_, mapping := e.LogicalType.Value.(*pqformat.MapType)
	if t := e.ConvertedType; e.LogicalType.Value == nil && t.Valid {
		list = t.V == deprecated.List
		mapping = t.V == deprecated.Map || t.V == deprecated.MapKeyValue
	}
	switch {
	case list:
		f.shape = shapeWrapper
		name := c.Columns()[0].Name()
		if inner.shape == shapeObject && len(inner.fields) == 1 && name != "array" && name != c.Name()+"_tuple" {
			inner.shape = shapeWrapper
		}
	case mapping && inner.shape == shapeObject && len(inner.fields) <= 2 && len(inner.fields) > 0 &&
		inner.fields[0].shape == shapeLeaf && !inner.fields[0].repeated:
		f.shape = shapeMapping
	}
}

// parquetRow is the values of the leaf columns of one row.
type parquetRow struct {
	values []parquet.Value // column by column
	// at is the next value of each column, end the end of its values.
	at, end []int
	key     []byte // scratch
}

func (r *parquetRow) reset() { r.values, r.at, r.end = r.values[:0], r.at[:0], r.end[:0] }

// endColumn says that the values of a column are all there.
func (r *parquetRow) endColumn() {
	start := 0
	if n := len(r.end); n > 0 {
		start = r.end[n-1]
	}
	r.at, r.end = append(r.at, start), append(r.end, len(r.values))
}

// appendObject appends the row.
func (r *parquetRow) appendObject(b []byte, fields []parquetField) (_ []byte, err error) {
	if b, err = r.appendFields(b, fields); err != nil {
		return b, err
	}
	for i := range r.at {
		if r.at[i] != r.end[i] {
			return b, errLevels
		}
	}
	return b, nil
}

var errLevels = fmt.Errorf("%w: the levels of a row's values do not fit the schema", parquetio.ErrCorrupt)

func (r *parquetRow) appendFields(b []byte, fields []parquetField) (_ []byte, err error) {
	b = append(b, '{')
	for i := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, fields[i].label...)
		if b, err = r.appendField(b, &fields[i]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func (r *parquetRow) appendField(b []byte, f *parquetField) (_ []byte, err error) {
	switch {
	case f.optional && !r.present(f):
		return append(b, "null"...), r.skip(f)
	case !f.repeated:
		return r.appendValue(b, f)
	case !r.present(f):
		return append(b, "[]"...), r.skip(f)
	}
	b = append(b, '[')
	for {
		if b, err = r.appendValue(b, f); err != nil {
			return b, err
		}
		if !r.another(f) {
			return append(b, ']'), nil
		}
		b = append(b, ',')
	}
}

// present reports whether the next value is one of the field, and not the mark of its absence.
func (r *parquetRow) present(f *parquetField) bool {
	if f.from == f.to {
		return !f.repeated // a group without fields
	}
	i := r.at[f.from]
	return i < r.end[f.from] && r.values[i].DefinitionLevel() >= f.definition
}

// skip passes over the mark of an absent field, of which each column below has one.
func (r *parquetRow) skip(f *parquetField) error {
	for i := f.from; i < f.to; i++ {
		if r.at[i] == r.end[i] {
			return errLevels
		}
		r.at[i]++
	}
	return nil
}

// another reports whether a further element of a repeated field comes next.
func (r *parquetRow) another(f *parquetField) bool {
	i := r.at[f.from]
	return i < r.end[f.from] && r.values[i].RepetitionLevel() == f.repetition
}

// appendValue appends the value of a field that is there, or one element of a repeated field.
func (r *parquetRow) appendValue(b []byte, f *parquetField) ([]byte, error) {
	switch f.shape {
	case shapeObject:
		return r.appendFields(b, f.fields)
	case shapeWrapper:
		return r.appendField(b, &f.fields[0])
	case shapeMapping:
		return r.appendMapping(b, &f.fields[0])
	}
	i := r.at[f.from]
	if i == r.end[f.from] {
		return b, errLevels
	}
	r.at[f.from]++
	v := &r.values[i]
	if v.Kind() != f.kind {
		return b, errLevels
	}
	return f.append(b, v), nil
}

// appendMapping appends pairs as an object, whose names are strings.
func (r *parquetRow) appendMapping(b []byte, pairs *parquetField) (_ []byte, err error) {
	if !r.present(pairs) {
		return append(b, "{}"...), r.skip(pairs)
	}
	b = append(b, '{')
	for {
		if r.key, err = r.appendField(r.key[:0], &pairs.fields[0]); err != nil {
			return b, err
		}
		if r.key[0] == '"' {
			b = append(b, r.key...)
		} else {
			b = jsonvalue.AppendString(b, r.key)
		}
		b = append(b, ':')
		if len(pairs.fields) == 1 {
			b = append(b, "null"...)
		} else if b, err = r.appendField(b, &pairs.fields[1]); err != nil {
			return b, err
		}
		if !r.another(pairs) {
			return append(b, '}'), nil
		}
		b = append(b, ',')
	}
}
