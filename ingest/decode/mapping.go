package decode

import (
	"errors"
	"fmt"
)

// Mapping says where the fields of the graph are in the JSON values. Each field is a Path (see
// ParsePath).
type Mapping struct {
	Nodes NodeMapping
	Edges EdgeMapping
	// EdgeTopics, by topic, map the topics of edges beside that of Edges. Each has edges of a kind of its own.
	EdgeTopics map[string]EdgeMapping
	// Attributes, by topic, map the topics that have nothing but attributes or vectors of nodes.
	Attributes map[string]AttributesMapping
	// Orders, by topic, map the topics of orders.
	Orders map[string]OrderMapping
}

// NodeMapping maps the values of the nodes topic.
type NodeMapping struct {
	// Debezium: the values are Debezium's change events of rows, and the paths lead into the row.
	Debezium bool
	// ID of the node; a value without one takes the record's key.
	ID string
	// Text pieces, joined by newlines in this order. A list counts as its elements; absent and null
	// pieces are left out.
	Text []string
	// StripHTML removes markup from each piece of text.
	StripHTML bool
	// Class is the node's class, for evaluation; "" maps none.
	Class string
	// UsualClass: nobody has named the class, so that a table need not have its column.
	UsualClass bool
	// EventTime is when the change happened; "" or an absent field takes the record's timestamp.
	EventTime string
	// Deleted says which records delete their node: a boolean's path, or conditions (see
	// parseConditions); "" is none.
	Deleted string
	// Edges lead to the far ends of the edges that the node record carries. Together they are all that it states.
	Edges []EdgePath
	// Directed are the kinds whose edges have a direction.
	Directed []string
	// Attributes are carried beside the text, and never embedded.
	Attributes []Attribute
	// Vectors are what other models have made of the node.
	Vectors []Vector
}

// EdgeMapping maps the values of the edges topic.
type EdgeMapping struct {
	// Debezium as in NodeMapping.
	Debezium bool
	// Src is the source; a value without one takes the record's key.
	Src string
	// Dst is the destination, or several (`related.also_bought[*]`).
	Dst string
	// EventTime as in NodeMapping.
	EventTime string
	// Deleted says which records delete their edges, as in NodeMapping.
	Deleted string
	// Mode says what a record asserts; "" is Add.
	Mode Mode
	// Weight of the record's edges; an absent field is 1, and "" maps none.
	Weight string
	// Kind of the record's edges: a path, a constant in double quotes, or "" for none.
	Kind string
	// Directed are the kinds whose edges have a direction.
	Directed []string
}

// Mode says how the edges of a record relate to earlier ones of its source.
type Mode string

const (
	// Add: each record adds its edges.
	Add Mode = "add"
	// Replace: each record holds all edges of its source.
	Replace Mode = "replace"
)

// Limits bound what one record may carry.
type Limits struct {
	// RecordBytes bounds a value.
	RecordBytes int
	// TextBytes bounds a node's joined text.
	TextBytes int
	// EdgesPerRecord bounds the edges of one record.
	EdgesPerRecord int
}

// MaxIDBytes bounds node ids and classes.
const MaxIDBytes = 512

// slot is where the scanner puts the values of one mapped field.
type slot int

// Text piece i is slotText + i. The attributes follow, the vectors, and the conditions of a deletion. Edges and orders
// have their further fields in the place of texts.
const (
	slotID slot = iota
	slotClass
	slotTime
	slotEnds
	slotText
)

// compile builds the trie that the scanner walks. Its error names all bad paths, after the errors that
// are known of the mapping already.
func compile(fields []mappedField, errs ...error) (*pathNode, error) {
	root := &pathNode{}
	for _, f := range fields {
		if f.path == "" {
			continue
		}
		p, err := ParsePath(f.path)
		if err == nil && !f.many && p.wild() {
			err = fmt.Errorf("path %q: [*] gives several values where one is needed; write [0] for the "+
				"first, or [name=value] for the element whose field has the value", f.path)
			if f.name == "edges.src" {
				err = fmt.Errorf("%w; what was bought or viewed together is an order: map it with ingest.baskets, and "+
					"send files of it with --orders", err)
			}
		}
		if err != nil {
			errs = append(errs, &FieldError{Field: f.name, Err: err})
			continue
		}
		root.insert(p, f)
	}
	root.finish()
	return root, errors.Join(errs...)
}

// FieldError is what is wrong with the path of a mapped field.
type FieldError struct {
	// Field in the configuration, below ingest, such as nodes.text.
	Field string
	Err   error
}

func (e *FieldError) Error() string { return fmt.Sprintf("mapping of %s: %v", e.Field, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

type mappedField struct {
	name, path string
	slot       slot
	many       bool // may have several values
	// states: that there is no value says something, such as that an order has no items. So a value that stands in the
	// path's way is captured, too.
	states bool
}
