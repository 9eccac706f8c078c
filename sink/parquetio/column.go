package parquetio

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A Type is how values of a column become Go values.
type Type[V any] struct {
	kind  parquet.Kind
	value func(parquet.Value) V
}

// The types that our formats use.

func String() Type[string] {
	return Type[string]{parquet.ByteArray, func(v parquet.Value) string { return string(v.ByteArray()) }}
}
func Int32() Type[int32]   { return Type[int32]{parquet.Int32, parquet.Value.Int32} }
func Int64() Type[int64]   { return Type[int64]{parquet.Int64, parquet.Value.Int64} }
func Float() Type[float32] { return Type[float32]{parquet.Float, parquet.Value.Float} }
func Bool() Type[bool]     { return Type[bool]{parquet.Boolean, parquet.Value.Boolean} }

// A Column reads one column of a file into a field of T.
type Column[T any] struct {
	Name  string
	kind  parquet.Kind
	lists int // depth of lists: 0, 1 or 2
	read  func(c *cursor, rows []T) error
}

// Scalar reads a column of single values; null gives the zero value.
func Scalar[T, V any](name string, t Type[V], set func(*T, V)) Column[T] {
	return Column[T]{Name: name, kind: t.kind, read: func(c *cursor, rows []T) error {
		for i := range rows {
			v, err := c.next()
			if err != nil {
				return err
			}
			if v.DefinitionLevel() == c.present {
				set(&rows[i], t.value(v))
			}
		}
		return nil
	}}
}

// List reads a column of lists. Null and empty lists give nil; null elements
// are left out.
func List[T, V any](name string, t Type[V], set func(*T, []V)) Column[T] {
	return Column[T]{Name: name, kind: t.kind, lists: 1, read: func(c *cursor, rows []T) error {
		var values []V // of all rows
		ends := make([]int, len(rows))
		for i := range rows {
			for more := true; more; more = c.continues() {
				v, err := c.next()
				if err != nil {
					return err
				}
				if v.DefinitionLevel() == c.present {
					values = append(values, t.value(v))
				}
			}
			ends[i] = len(values)
		}
		start := 0
		for i, end := range ends {
			if end > start {
				set(&rows[i], values[start:end:end])
			}
			start = end
		}
		return nil
	}}
}

// Lists reads a column of lists of lists.
func Lists[T, V any](name string, t Type[V], set func(*T, [][]V)) Column[T] {
	return Column[T]{Name: name, kind: t.kind, lists: 2, read: func(c *cursor, rows []T) error {
		var values []V                 // of all rows
		var starts []int               // of all inner lists, in values
		ends := make([]int, len(rows)) // of each row, in starts
		for i := range rows {
			for more := true; more; more = c.continues() {
				v, err := c.next()
				if err != nil {
					return err
				}
				if v.RepetitionLevel() < 2 && v.DefinitionLevel() >= c.outer {
					starts = append(starts, len(values))
				}
				if v.DefinitionLevel() == c.present {
					values = append(values, t.value(v))
				}
			}
			ends[i] = len(starts)
		}
		inner := make([][]V, len(starts))
		starts = append(starts, len(values))
		for k := range inner {
			if a, b := starts[k], starts[k+1]; b > a {
				inner[k] = values[a:b:b]
			}
		}
		start := 0
		for i, end := range ends {
			if end > start {
				set(&rows[i], inner[start:end:end])
			}
			start = end
		}
		return nil
	}}
}

// leaf is where a column of ours lies in a file.
type leaf struct {
	index   int // among the file's leaf columns
	present int // definition level of a value that is there
	outer   int // definition level of an entry of the outermost list
}

func findLeaves[T any](f *parquet.File, columns []Column[T]) (leaves []leaf, err error) {
	defer recoverCorrupt(&err)
	for _, col := range columns {
		l, err := col.find(f)
		if err != nil {
			return nil, err
		}
		leaves = append(leaves, l)
	}
	return leaves, nil
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
	l := leaf{index: found.ColumnIndex, present: found.MaxDefinitionLevel}
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
