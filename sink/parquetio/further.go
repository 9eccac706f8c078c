package parquetio

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Further is an optional column that no tag of T names, because only a configuration knows it.
type Further[T any] struct {
	Name string
	// ID is the field id, Element that of the elements of a list.
	ID, Element int
	// Of is any value of the type: float64, bool, string, []string, or time.Time, in microseconds.
	Of any
	// Value returns the value of a row, nil for null.
	Value func(*T) any
}

// schema is that of T and the further columns.
func (f Format[T]) schema() *parquet.Schema {
	var fields []reflect.StructField
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if field.IsExported() {
			fields = append(fields, field)
		}
	}
	for i, c := range f.Further {
		t, options := reflect.TypeOf(c.Of), "optional"
		switch c.Of.(type) {
		case time.Time:
			t, options = reflect.TypeFor[int64](), "optional,timestamp(microsecond)"
		case []string:
			options = "optional,list"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Further%d", i), Type: t,
			Tag: reflect.StructTag(fmt.Sprintf("parquet:%s parquet-element:%s",
				strconv.Quote(fmt.Sprintf("%s,%s,id(%d)", c.Name, options, c.ID)),
				strconv.Quote(fmt.Sprintf(",id(%d)", c.Element))))})
	}
	return parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
}

// row returns what the columns have of a row. own is the schema of T.
func (f Format[T]) row(own *parquet.Schema, r *T) parquet.Row {
	out := own.Deconstruct(nil, r)
	first := len(own.Columns())
	for i, c := range f.Further {
		switch v := c.Value(r).(type) {
		case nil:
			out = append(out, parquet.NullValue().Level(0, 0, first+i))
		case []string: // level 1 is a list, 2 an element of it
			if len(v) == 0 {
				out = append(out, parquet.NullValue().Level(0, 1, first+i))
			}
			for at, s := range v {
				out = append(out, parquet.ValueOf(s).Level(min(at, 1), 2, first+i))
			}
		case time.Time:
			out = append(out, parquet.ValueOf(v.UnixMicro()).Level(0, 1, first+i))
		default:
			out = append(out, parquet.ValueOf(v).Level(0, 1, first+i))
		}
	}
	return out
}
