package rows

import "giantstream/sink/parquetio"

// Attributes is what is known beside the text of a node, such as its price. A window has such a row of a node
// if nothing else about the node has changed; else the node's own row says all.
type Attributes struct {
	NodeID string `parquet:"node_id"`
	// Attributes is a JSON object: names ascending, no spaces.
	Attributes string `parquet:"attributes"`
	// EventTime is that of the newest statement about the node or its attributes, in microseconds since the
	// Unix epoch.
	EventTime int64 `parquet:"event_time,timestamp(microsecond)"`
}

// NodeAttributes is the table of attributes that changed alone.
var NodeAttributes = &Table[Attributes]{
	Name:        "attributes",
	Key:         func(r *Attributes) string { return r.NodeID },
	EventTime:   func(r *Attributes) int64 { return r.EventTime },
	KeyColumns:  []string{ColNodeID, ColEventTime},
	MemoryBytes: func(r *Attributes) int64 { return int64(len(r.NodeID) + len(r.Attributes) + 64) },
	format: parquetio.Format[Attributes]{Name: "attributes/1",
		Size:       func(r *Attributes) int { return 16 + len(r.NodeID) + len(r.Attributes) },
		Generation: func(*Attributes) int64 { return 0 }, Unbounded: []string{ColAttributes}},
	columns: []parquetio.Column[Attributes]{
		parquetio.Scalar(ColNodeID, parquetio.String(), func(r *Attributes, v string) { r.NodeID = v }),
		parquetio.Scalar(ColAttributes, parquetio.String(), func(r *Attributes, v string) { r.Attributes = v }),
		parquetio.Scalar(ColEventTime, parquetio.Int64(), func(r *Attributes, v int64) { r.EventTime = v }),
	},
}
