package rows

// Row is one instance-to-label row: a node as an instance, and its neighbours as labels. The same
// schema serves the batches that the stream commits and the training set of a generation.
//
// Levels run from coarse to fine. Targets[t][k] is a cluster of level t that holds at least one of
// the node's labels, and TargetCounts[t][k] is how many of them it holds. Targets[t] is ascending.
type Row struct {
	NodeID string `parquet:"node_id"`
	// Text is the node's raw text.
	Text string `parquet:"text"`
	// Class is the node's class if the input has one, else ""; used for evaluation only.
	Class string `parquet:"class,optional"`
	// Labels are the ids of the neighbours, ascending, without duplicates.
	Labels []string `parquet:"labels,list"`
	// FeatureIndices and FeatureValues are Ψ(Text), ascending by index. Empty in rows written
	// before generation 1.
	FeatureIndices []int32   `parquet:"feature_indices,list"`
	FeatureValues  []float32 `parquet:"feature_values,list"`
	Targets        [][]int32 `parquet:"targets,list"`
	TargetCounts   [][]int32 `parquet:"target_counts,list"`
	// Generation is the generation whose vectorizer and tree made the features and targets; 0 when
	// there was none.
	Generation int64 `parquet:"generation"`
	// EventTime is the event time of the node's newest change, in microseconds since the Unix
	// epoch. Column type TIMESTAMP(MICROS, UTC).
	EventTime int64 `parquet:"event_time,timestamp(microsecond)"`
	// Deleted marks a node that was deleted; Text and Labels are empty then.
	Deleted bool `parquet:"deleted"`
	// Attributes are what is known beside the text, as in NodeAttributes; "" for none. Never embedded.
	Attributes string `parquet:"attributes,optional"`
	// LinkEnds are those of the Labels whose link has a stated weight. LinkWeights and LinkTimes are their
	// weights, and the event times of the statements of them, in microseconds since the Unix epoch. Any other
	// link weighs 1. Empty in training sets.
	LinkEnds    []string  `parquet:"link_ends,list" json:",omitempty"`
	LinkWeights []float32 `parquet:"link_weights,list" json:",omitempty"`
	LinkTimes   []int64   `parquet:"link_times,list" parquet-element:",timestamp(microsecond)" json:",omitempty"`
}

// AddLink says the weight and the time of the link to a label. Ends come in ascending order.
func (r *Row) AddLink(end string, weight float32, time int64) {
	r.LinkEnds = append(r.LinkEnds, end)
	r.LinkWeights = append(r.LinkWeights, weight)
	r.LinkTimes = append(r.LinkTimes, time)
}

// linkBytes is what a link takes beside its end.
const linkBytes = 4 + 8

// MemoryBytes estimates the row's size in memory.
func (r *Row) MemoryBytes() int64 {
	n := len(r.NodeID) + len(r.Text) + len(r.Class) + len(r.Attributes) + 8*len(r.FeatureIndices) + 64
	for _, l := range r.Labels {
		n += len(l) + 16
	}
	for _, end := range r.LinkEnds {
		n += len(end) + 16 + linkBytes
	}
	return int64(n)
}

// Committed is a row of the commit log and the manifest of its shard that has committed it.
type Committed struct {
	Row
	Seq int64
}
