package rows

import "giantstream/sink/parquetio"

// Nodes is the table of instance-to-label rows.
var Nodes = &Table[Row]{
	Key:         func(r *Row) string { return r.NodeID },
	EventTime:   func(r *Row) int64 { return r.EventTime },
	KeyColumns:  []string{ColNodeID, ColEventTime},
	MemoryBytes: (*Row).MemoryBytes,
	format: parquetio.Format[Row]{Name: "rows/1", Size: size, Generation: func(r *Row) int64 { return r.Generation },
		Unbounded: []string{ColText, ColAttributes}},
	columns: columns(),
}

// size estimates the raw bytes of a row in its columns.
func size(r *Row) int {
	n := 24 + len(r.NodeID) + len(r.Text) + len(r.Class) + len(r.Attributes) + 8*len(r.FeatureIndices)
	for _, l := range r.Labels {
		n += 4 + len(l)
	}
	for _, end := range r.LinkEnds {
		n += 4 + len(end) + linkBytes
	}
	for _, kind := range r.LinkKinds {
		n += 4 + len(kind)
	}
	for _, t := range r.Targets {
		n += 8 * len(t) // and as many counts
	}
	return n
}

// The columns.
const (
	ColNodeID         = "node_id"
	ColText           = "text"
	ColClass          = "class"
	ColLabels         = "labels"
	ColFeatureIndices = "feature_indices"
	ColFeatureValues  = "feature_values"
	ColTargets        = "targets"
	ColTargetCounts   = "target_counts"
	ColGeneration     = "generation"
	ColEventTime      = "event_time"
	ColDeleted        = "deleted"
	ColAttributes     = "attributes"
	ColLinkEnds       = "link_ends"
	ColLinkWeights    = "link_weights"
	ColLinkTimes      = "link_times"
	ColLinkKinds      = "link_kinds"
)

func columns() []parquetio.Column[Row] {
	str, i32, i64 := parquetio.String(), parquetio.Int32(), parquetio.Int64()
	return []parquetio.Column[Row]{
		parquetio.Scalar(ColNodeID, str, func(r *Row, v string) { r.NodeID = v }),
		parquetio.Scalar(ColText, str, func(r *Row, v string) { r.Text = v }),
		parquetio.Scalar(ColClass, str, func(r *Row, v string) { r.Class = v }),
		parquetio.List(ColLabels, str, func(r *Row, v []string) { r.Labels = v }),
		parquetio.List(ColFeatureIndices, i32, func(r *Row, v []int32) { r.FeatureIndices = v }),
		parquetio.List(ColFeatureValues, parquetio.Float(), func(r *Row, v []float32) { r.FeatureValues = v }),
		parquetio.Lists(ColTargets, i32, func(r *Row, v [][]int32) { r.Targets = v }),
		parquetio.Lists(ColTargetCounts, i32, func(r *Row, v [][]int32) { r.TargetCounts = v }),
		parquetio.Scalar(ColGeneration, i64, func(r *Row, v int64) { r.Generation = v }),
		parquetio.Scalar(ColEventTime, i64, func(r *Row, v int64) { r.EventTime = v }),
		parquetio.Scalar(ColDeleted, parquetio.Bool(), func(r *Row, v bool) { r.Deleted = v }),
		parquetio.Scalar(ColAttributes, str, func(r *Row, v string) { r.Attributes = v }).Optional(),
		parquetio.List(ColLinkEnds, str, func(r *Row, v []string) { r.LinkEnds = v }).Optional(),
		parquetio.List(ColLinkWeights, parquetio.Float(), func(r *Row, v []float32) { r.LinkWeights = v }).Optional(),
		parquetio.List(ColLinkTimes, i64, func(r *Row, v []int64) { r.LinkTimes = v }).Optional(),
		parquetio.List(ColLinkKinds, str, func(r *Row, v []string) { r.LinkKinds = v }).Optional(),
	}
}
