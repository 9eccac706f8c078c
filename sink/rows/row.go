package rows

// Row is one instance-to-label row: a node as an instance, and its neighbours as labels. The same
// schema serves the batches that the stream commits and the training set of a generation.
//
// Levels run from coarse to fine. Targets[t][k] is a cluster of level t that holds at least one of
// the node's labels, and TargetCounts[t][k] is how many of them it holds. Targets[t] is ascending.
type Row struct {
	NodeID string `parquet:"node_id" json:"node_id"`
	// Text is the node's raw text.
	Text string `parquet:"text" json:"text,omitempty"`
	// Class is the node's class if the input has one, else ""; used for evaluation only.
	Class string `parquet:"class,optional" json:"class,omitempty"`
	// Labels are the ids of the neighbours, ascending, without duplicates.
	Labels []string `parquet:"labels,list" json:"labels,omitempty"`
	// FeatureIndices and FeatureValues are Ψ(Text), ascending by index. Empty in rows written
	// before generation 1.
	FeatureIndices []int32   `parquet:"feature_indices,list" json:"feature_indices,omitempty"`
	FeatureValues  []float32 `parquet:"feature_values,list" json:"feature_values,omitempty"`
	Targets        [][]int32 `parquet:"targets,list" json:"targets,omitempty"`
	TargetCounts   [][]int32 `parquet:"target_counts,list" json:"target_counts,omitempty"`
	// Generation is the generation whose vectorizer and tree made the features and targets; 0 when
	// there was none.
	Generation int64 `parquet:"generation" json:"generation,omitempty"`
	// EventTime is the event time of the node's newest change, in microseconds since the Unix
	// epoch. Column type TIMESTAMP(MICROS, UTC).
	EventTime int64 `parquet:"event_time,timestamp(microsecond)" json:"event_time,omitempty"`
	// Deleted marks a node that was deleted; Text and Labels are empty then.
	Deleted bool `parquet:"deleted" json:"deleted,omitempty"`
	// Attributes are what is known beside the text, as in NodeAttributes; "" for none. Never embedded.
	Attributes string `parquet:"attributes,optional" json:"attributes,omitempty"`
	// LinkEnds are those of the Labels whose link has a kind or a stated weight, once for each kind.
	// LinkWeights, LinkTimes and LinkKinds are beside them. Any other label has one link, without a kind, which weighs
	// 1. Empty in training sets.
	LinkEnds    []string  `parquet:"link_ends,list" json:"link_ends,omitempty"`
	LinkWeights []float32 `parquet:"link_weights,list" json:"link_weights,omitempty"`
	// LinkTimes are event times of the newest statements, in microseconds since the Unix epoch.
	LinkTimes []int64 `parquet:"link_times,list" parquet-element:",timestamp(microsecond)" json:"link_times,omitzero"`
	// LinkKinds are the kinds of the links, "" for none.
	LinkKinds []string `parquet:"link_kinds,list" json:"link_kinds,omitempty"`
}

// Link is one of the links to a label.
type Link struct {
	Kind   string
	Weight float32
	// Time is the event time of the newest statement of the link.
	Time int64
	// Plain: the link has no kind, and no weight is stated.
	Plain bool
}

// AddLabel adds a label and the links to it, of which there is one of each kind, by kind. Without a link it does
// nothing. Labels come in ascending order. A plain link goes without saying, unless there is another one.
func (r *Row) AddLabel(end string, links ...Link) {
	if len(links) == 0 {
		return
	}
	r.Labels = append(r.Labels, end)
	if len(links) == 1 && links[0].Plain {
		return
	}
	for _, l := range links {
		r.LinkEnds, r.LinkKinds = append(r.LinkEnds, end), append(r.LinkKinds, l.Kind)
		r.LinkWeights, r.LinkTimes = append(r.LinkWeights, l.Weight), append(r.LinkTimes, l.Time)
	}
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
		n += len(end) + 2*16 + linkBytes
	}
	for _, kind := range r.LinkKinds {
		n += len(kind)
	}
	return int64(n)
}

// Committed is a row of the commit log and the manifest of its shard that has committed it.
type Committed struct {
	Row
	Seq int64
}
