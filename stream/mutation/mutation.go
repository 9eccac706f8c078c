package mutation

import (
	"cmp"
	"iter"
)

// A Mutation is one decoded change of the graph. Its Version says when it was stated.
type Mutation struct {
	Op Op
	// ID is the node that owns the fact: the node itself, the source of an edge, or, for mirrored
	// assertions, the destination of the original edge. The hash of ID decides the shard.
	ID string
	// Other is the far end of a single edge.
	Other string
	// Others are the far ends of SetEdges, and of a node record with inlined edges.
	Others []string
	// Weight is that of the links which PutEdge, SetEdges or MirrorPut states.
	Weight Weight
	// Kind is that of the links which the mutation names. ClearEdges, and a list that takes the place of
	// another one, are about the links of all kinds.
	Kind Kind
	// Kinds, if they are not nil, are those of Others, one each.
	Kinds []Kind
	Text  string
	Class string
	// HasEdges: the node record carries an edge list (Others), which replaces the list that the
	// node's previous record carried.
	HasEdges bool
	// Attributes are what the record says beside the text, as a JSON object: names ascending, no spaces. It
	// takes the place of what the input said before. A node record without attributes mapped has "".
	Attributes string
	// HasVectors: the record states the vectors that its input has of the node: Vectors, ascending by name. They
	// take the place of what the input said before.
	HasVectors bool
	Vectors    []Vector
	// Order is what SetOrder, AddLines and RemoveLines say of the order ID. No node has its id by that.
	Order   *Order
	Version Version
}

// Ends are the far ends that the mutation lists (Others), with the kind of the link to each.
func (m *Mutation) Ends() iter.Seq2[string, Kind] {
	return func(yield func(string, Kind) bool) {
		for i, other := range m.Others {
			kind := m.Kind
			if m.Kinds != nil {
				kind = m.Kinds[i]
			}
			if !yield(other, kind) {
				return
			}
		}
	}
}

// OfFurther reports whether an input beside nodes and edges may state the mutation: attributes, or a link of a kind.
func (m *Mutation) OfFurther() bool {
	return m.Op == SetAttributes || (m.Op == PutEdge || m.Op == DeleteEdge) && m.Kind.Name != ""
}

// NoAttributes is the object without attributes.
const NoAttributes = "{}"

// Op says what a Mutation does.
type Op uint8

// The operations. A node's edges survive the deletion of the node: they dangle until the node
// comes back, and the fit leaves dangling edges out.
const (
	// PutNode states text and class of node ID, and with HasEdges its edges.
	PutNode Op = iota + 1
	// DeleteNode deletes node ID.
	DeleteNode
	// PutEdge asserts the edge ID → Other.
	PutEdge
	// DeleteEdge retracts the edge ID → Other.
	DeleteEdge
	// SetEdges asserts exactly the edges ID → Others. It retracts older assertions of ID that are
	// not in the list.
	SetEdges
	// ClearEdges retracts every older assertion of ID.
	ClearEdges
	// MirrorPut and MirrorDelete carry PutEdge and DeleteEdge of an undirected graph to the shard
	// of the far end. ID is that far end, Other the end that asserted the edge.
	MirrorPut
	MirrorDelete
	// SetAttributes states the attributes and vectors of node ID that an input has. Attributes are "" where it maps
	// none.
	SetAttributes
	// SetOrder states all lines of order ID. An order without lines is deleted.
	SetOrder
	// AddLines states lines of order ID beside those that other records state.
	AddLines
	// RemoveLines takes lines of order ID back.
	RemoveLines
)

// Version orders the statements about one fact. The later event time wins; ties go to the topic
// of higher rank, then to the later offset. All versions of one fact come from the same partition
// number, so their offsets compare.
type Version struct {
	// EventTime is in microseconds since the Unix epoch.
	EventTime int64
	// Rank is the Input that the record came from. Mirrored assertions keep the rank and offset of the
	// original record.
	Rank   uint8
	Offset int64
}

// Compare returns -1, 0 or +1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.EventTime, w.EventTime), cmp.Compare(v.Rank, w.Rank), cmp.Compare(v.Offset, w.Offset))
}

// Batch is a run of mutations for one shard, in the order of their partitions.
type Batch struct {
	// Statements are those of all records that the batch covers. Their mutations, one after the other,
	// are Mutations.
	Statements []Statement
	Mutations  []Mutation
	// Next holds, for each input topic, the offset that follows the last record covered. Records
	// that were skipped or dead-lettered are covered, too.
	Next map[string]int64
	// Last has, by topic, the last record that was read of it. A topic is missing if the batch has
	// no records of it.
	Last map[string]Record
	// Lost holds offsets below Next whose records the topic no longer has. They are in no batch.
	Lost []Lost
	// Bytes is the size of the records that the batch was decoded from.
	Bytes int64
	// CaughtUp: when the batch was fetched, no further record was waiting in any of the shard's
	// partitions.
	CaughtUp bool
}

// Lost is a range of a topic's offsets, From included and To not.
type Lost struct {
	Topic    string
	From, To int64
}

// Record names a record of a topic and what tells it from others that may take its offset.
type Record struct {
	Offset      int64  `json:"offset"`
	Fingerprint string `json:"fingerprint"`
}
