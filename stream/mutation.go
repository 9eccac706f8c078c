package stream

// A Mutation is one decoded change of the graph. Applying a set of mutations
// in any order, any number of times, gives the same graph: every fact carries
// the Version of the record that stated it and the highest version wins.
type Mutation struct {
	Op Op
	// ID is the node that owns the fact: the node itself, the source of an
	// edge, or (mirror ops) the destination of the original edge. Its hash
	// decides the shard.
	ID string
	// Other is the far end of a single edge.
	Other string
	// Others are the far ends, for SetEdges and for nodes with inlined edges.
	Others []string
	Text   string
	Class  string
	// HasEdges: the node record carries an edge list (Others), which
	// replaces the list that the node's previous record carried.
	HasEdges bool
	Version  Version
}

// Op says what a Mutation does.
type Op uint8

// The ops. A node's edges survive its deletion: they dangle until the node
// comes back, and the fit leaves dangling edges out.
const (
	// PutNode states text and class of node ID (and its edges, HasEdges).
	PutNode Op = iota + 1
	// DeleteNode deletes node ID.
	DeleteNode
	// PutEdge asserts the edge ID → Other.
	PutEdge
	// DeleteEdge takes the assertion ID → Other back.
	DeleteEdge
	// SetEdges asserts exactly the edges ID → Others: older assertions by
	// ID that are not in the list are taken back.
	SetEdges
	// ClearEdges takes back every older assertion made by ID.
	ClearEdges
	// MirrorPut and MirrorDelete carry PutEdge and DeleteEdge of an
	// undirected graph to the shard of the far end: ID is the far end,
	// Other the end that asserted the edge.
	MirrorPut
	MirrorDelete
)

// Version orders the statements about one fact: later event time wins, ties
// go to the topic of higher rank, then to the later offset. Two versions of
// one fact always come from the same partition number, so offsets compare.
type Version struct {
	// EventTime in microseconds since the Unix epoch.
	EventTime int64
	// Rank of the source topic: 0 nodes, 1 edges. Mirrored assertions keep
	// the rank and offset of the original record.
	Rank   uint8
	Offset int64
}

// Compare returns -1, 0 or +1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	switch {
	case v.EventTime != w.EventTime:
		return sign(v.EventTime < w.EventTime)
	case v.Rank != w.Rank:
		return sign(v.Rank < w.Rank)
	case v.Offset != w.Offset:
		return sign(v.Offset < w.Offset)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// Batch is what a Feed hands to a shard: mutations in the order of their
// partitions, and for each input topic the offset that follows the last
// record covered (dead-lettered and skipped records are covered too).
type Batch struct {
	Mutations []Mutation
	Next      map[string]int64
	// Bytes is the size of the records the batch was decoded from.
	Bytes int64
	// CaughtUp: at the time of the fetch, nothing more was waiting in any
	// of the shard's partitions.
	CaughtUp bool
}
