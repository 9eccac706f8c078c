package parquetio

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A Type converts the values of a column to Go values.
type Type[V any] struct {
	kind  parquet.Kind
	value func(parquet.Value) V
}

// String is the type of UTF-8 columns.
func String() Type[string] {
	return Type[string]{parquet.ByteArray, func(v parquet.Value) string { return string(v.ByteArray()) }}
}

// Bytes is the type of binary columns.
func Bytes() Type[[]byte] {
	return Type[[]byte]{parquet.ByteArray, func(v parquet.Value) []byte { return bytes.Clone(v.ByteArray()) }}
}

// Int32 is the type of 32-bit integer columns.
func Int32() Type[int32] { return Type[int32]{parquet.Int32, parquet.Value.Int32} }

// Int64 is the type of 64-bit integer and timestamp columns.
func Int64() Type[int64] { return Type[int64]{parquet.Int64, parquet.Value.Int64} }

// Int8 is the type of 8-bit integer columns, which Parquet keeps as 32-bit ones.
func Int8() Type[int8] {
	return Type[int8]{parquet.Int32, func(v parquet.Value) int8 { return int8(v.Int32()) }}
}

// Float is the type of single-precision columns.
func Float() Type[float32] { return Type[float32]{parquet.Float, parquet.Value.Float} }

// Double is the type of double-precision columns.
func Double() Type[float64] { return Type[float64]{parquet.Double, parquet.Value.Double} }

// Bool is the type of boolean columns.
func Bool() Type[bool] { return Type[bool]{parquet.Boolean, parquet.Value.Boolean} }

// A Column reads one column of a file into a field of T.
type Column[T any] struct {
	Name  string
	kind  parquet.Kind
	lists int // depth of lists: 0, 1 or 2
	read  func(c *cursor, rows []T) error
	// optional: files of earlier versions lack the column.
	optional bool
	// id, unless 0, is what the column is found by, in the place of its name.
	id int
}

// Optional returns the column as one that files of earlier versions lack: their rows keep the zero
// value.
func (col Column[T]) Optional() Column[T] {
	col.optional = true
	return col
}

// WithID returns the column as one that is found by its field id: tools that rewrite a file may change
// names.
func (col Column[T]) WithID(id int) Column[T] {
	col.id = id
	return col
}

// Scalar reads a column of single values; null gives the zero value.
func Scalar[T, V any](name string, t Type[V], set func(*T, V)) Column[T] {
	return Column[T]{Name: name, kind: t.kind, read: func(c *cursor, rows []T) error {
		for i := range rows {
			if !c.more() {
				return c.short()
			}
			v := &c.buf[c.at]
			c.at++
			if v.DefinitionLevel() == c.present {
				set(&rows[i], t.value(*v))
			}
		}
		return nil
	}}
}

// List reads a column of lists. Null and empty lists give nil; null elements are left out.
func List[T, V any](name string, t Type[V], set func(*T, []V)) Column[T] {
	return NullableList(name, t, func(row *T, list []V) {
		if len(list) > 0 {
			set(row, list)
		}
	})
}

// NullableList is List for columns in which null and an empty list are not the same: set is called for
// the latter.
func NullableList[T, V any](name string, t Type[V], set func(*T, []V)) Column[T] {
	return Column[T]{Name: name, kind: t.kind, lists: 1, read: func(c *cursor, rows []T) error {
		lists, err := readLists(c, len(rows), t)
		if err != nil {
			return err
		}
		for i, end := range lists.rows {
			if start := lists.rowStart(i); lists.there[i] {
				set(&rows[i], lists.values[start:end:end])
			}
		}
		return nil
	}}
}

// Lists reads a column of lists of lists.
func Lists[T, V any](name string, t Type[V], set func(*T, [][]V)) Column[T] {
	return Column[T]{Name: name, kind: t.kind, lists: 2, read: func(c *cursor, rows []T) error {
		lists, err := readLists(c, len(rows), t)
		if err != nil {
			return err
		}
		inner := make([][]V, len(lists.starts))
		for k, start := range lists.starts {
			end := len(lists.values)
			if k+1 < len(lists.starts) {
				end = lists.starts[k+1]
			}
			if end > start {
				inner[k] = lists.values[start:end:end]
			}
		}
		for i, end := range lists.rows {
			if start := lists.rowStart(i); end > start {
				set(&rows[i], inner[start:end:end])
			}
		}
		return nil
	}}
}

// lists are the lists of some rows, end to end: one allocation for all.
type lists[V any] struct {
	values []V
	// starts of the inner lists in values; only for lists of lists.
	starts []int
	// rows holds the end of each row, in values or in starts.
	rows []int
	// there: the row is not null.
	there []bool
}

func (l *lists[V]) rowStart(i int) int {
	if i == 0 {
		return 0
	}
	return l.rows[i-1]
}

// readLists reassembles rows from repetition and definition levels as Dremel describes them (Melnik
// et al., VLDB 2010, section 4): repetition level 0 starts a row, 1 an entry of the outer list, 2
// one of the inner list.
func readLists[V any](c *cursor, rows int, t Type[V]) (lists[V], error) {
	nested := c.depth == 2
	l := lists[V]{values: make([]V, 0, c.expect), rows: make([]int, rows),
		there: make([]bool, rows)}
	for i := range rows {
		for first := true; ; first = false {
			if !c.more() {
				if first || c.failed() {
					return l, c.short()
				}
				break
			}
			v := &c.buf[c.at]
			repetition, definition := v.RepetitionLevel(), v.DefinitionLevel()
			if repetition == 0 && !first {
				break
			}
			c.at++
			l.there[i] = definition >= c.outer-1
			if nested && repetition < 2 && definition >= c.outer {
				l.starts = append(l.starts, len(l.values))
			}
			if definition == c.present {
				l.values = append(l.values, t.value(*v))
			}
		}
		if l.rows[i] = len(l.values); nested {
			l.rows[i] = len(l.starts)
		}
	}
	c.expect = len(l.values)
	return l, nil
}

// leaf is the place of a Column in a file.
type leaf struct {
	index   int // among the file's leaf columns
	present int // definition level of a value that is there
	outer   int // definition level of an entry of the outermost list
	depth   int // of lists
}

// findLeaves returns the columns that the file has, and their places. Only optional ones may be
// missing.
func findLeaves[T any](f *parquet.File, columns []Column[T]) (found []Column[T], leaves []leaf, err error) {
	defer recoverCorrupt(&err)
	for _, col := range columns {
		if col = col.namedIn(f); col.optional && child(f.Root(), col.Name) == nil {
			continue
		}
		l, err := col.find(f)
		if err != nil {
			return nil, nil, err
		}
		found, leaves = append(found, col), append(leaves, l)
	}
	return found, leaves, nil
}

// namedIn returns the column with the name that it has in a file, "" if the file has none with its id.
func (col Column[T]) namedIn(f *parquet.File) Column[T] {
	if col.id == 0 {
		return col
	}
	col.Name = ""
	for _, c := range f.Root().Columns() {
		if c.ID() == col.id {
			col.Name = c.Name()
		}
	}
	return col
}

func (col Column[T]) find(f *parquet.File) (leaf, error) {
	path := []string{col.Name}
	for range col.lists {
		path = append(path, "list", "element")
	}
	found, ok := f.Schema().Lookup(path...)
	if !ok {
		return leaf{}, fmt.Errorf("%w: column %s is missing", ErrSchema, strings.Join(path, "."))
	}
	if kind := found.Node.Type().Kind(); kind != col.kind || found.MaxRepetitionLevel != col.lists {
		return leaf{}, fmt.Errorf("%w: column %s is %v in %d lists, not %v in %d",
			ErrSchema, col.Name, kind, found.MaxRepetitionLevel, col.kind, col.lists)
	}
	l := leaf{index: found.ColumnIndex, present: found.MaxDefinitionLevel, depth: col.lists}
	var node parquet.Node = f.Root()
	for level := 0; l.outer == 0 && len(path) > 0; path = path[1:] {
		node = child(node, path[0])
		if node.Optional() || node.Repeated() {
			level++
		}
		if node.Repeated() {
			l.outer = level
		}
	}
	return l, nil
}

// child returns the field of that name, which Lookup has found before.
func child(node parquet.Node, name string) parquet.Node {
	for _, field := range node.Fields() {
		if field.Name() == name {
			return field
		}
	}
	return nil
}
