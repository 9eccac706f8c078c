package iceberg

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"giantstream/sink/parquetio"
	"giantstream/sink/vectordb"
)

var embeddingFormat = parquetio.Format[row]{Name: "iceberg-embeddings/1",
	Size:       func(r *row) int { return 60 + len(r.NodeID) + 4*len(r.Embedding) },
	Generation: func(r *row) int64 { return r.Generation }}

var embeddings = &kind{schema: Schema, comment: "embeddings of giantstream; written by giantstream-iceberg alone",
	source: "the topic", version: "kafka_offset", format: embeddingFormat.Name, summary: summarizeTopic,
	put: putter(embeddingFormat)}

// Fields of the table. A catalog numbers those of a new table anew: some the outermost first, some each list before the
// next column. With the list at the end both give these numbers.
const (
	fieldNodeID = 1 + iota
	fieldGeneration
	fieldSpace
	fieldStatus
	fieldEventTime
	fieldShard
	fieldSeq
	fieldPartition
	fieldOffset
	fieldEmbedding
	fieldElement
)

// Schema is that of a table of embeddings.
func Schema() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchemaWithIdentifiers(0, []int{fieldNodeID},
		iceberg.NestedField{ID: fieldNodeID, Name: "node_id", Type: p.String, Required: true},
		iceberg.NestedField{ID: fieldGeneration, Name: "generation", Type: p.Int64, Required: true},
		iceberg.NestedField{ID: fieldSpace, Name: "space", Type: p.Int64, Required: true,
			Doc: "vectors of one space can be compared"},
		iceberg.NestedField{ID: fieldStatus, Name: "status", Type: p.String, Required: true},
		iceberg.NestedField{ID: fieldEventTime, Name: "event_time", Type: p.TimestampTz, Required: true},
		iceberg.NestedField{ID: fieldShard, Name: "shard", Type: p.Int32, Required: true},
		iceberg.NestedField{ID: fieldSeq, Name: "seq", Type: p.Int64, Required: true},
		iceberg.NestedField{ID: fieldPartition, Name: "kafka_partition", Type: p.Int32, Required: true},
		iceberg.NestedField{ID: fieldOffset, Name: "kafka_offset", Type: p.Int64, Required: true,
			Doc: "the version of the row"},
		iceberg.NestedField{ID: fieldEmbedding, Name: "embedding",
			Type: &iceberg.ListType{ElementID: fieldElement, Element: p.Float32, ElementRequired: true},
			Doc:  "null for a node with the status no_text"},
	)
}

// row is a row of a data file; the numbers are those of Schema.
type row struct {
	NodeID     string    `parquet:"node_id,id(1)"`
	Generation int64     `parquet:"generation,id(2)"`
	Space      int64     `parquet:"space,id(3)"`
	Status     string    `parquet:"status,dict,id(4)"`
	EventTime  int64     `parquet:"event_time,timestamp(microsecond),id(5)"`
	Shard      int32     `parquet:"shard,id(6)"`
	Seq        int64     `parquet:"seq,id(7)"`
	Partition  int32     `parquet:"kafka_partition,id(8)"`
	Offset     int64     `parquet:"kafka_offset,id(9)"`
	Embedding  []float32 `parquet:"embedding,list,optional,id(10)" parquet-element:",id(11)"`

	attributes []any // in the order of Index.Attributes; none for nulls
}

// changeOf returns what a record of a partition does to its node.
func changeOf(r *vectordb.Record, partition int) *change {
	c := &change{node: r.NodeID, version: r.Offset, deleted: r.Deleted,
		bytes: int64(len(r.NodeID) + 4*len(r.Vector) + 200)}
	if !r.Deleted {
		c.row = &row{NodeID: r.NodeID, Embedding: r.Vector, Generation: r.Generation,
			Space: cmp.Or(r.Space, r.Generation), Status: cmp.Or(string(r.Status), "text"), EventTime: r.EventTime,
			Shard: int32(min(r.Shard, math.MaxInt32)), Seq: r.Seq, Partition: int32(partition), Offset: r.Offset}
	}
	return c
}

// Keys of a snapshot's summary; docs/ICEBERG.md says what each holds.
const (
	keyTopic      = "giantstream.topic"
	keyOffsets    = "giantstream.offsets"
	keyGeneration = "giantstream.generation"
	keySpace      = "giantstream.space"
)

func summarizeTopic(s state) iceberg.Properties {
	var offsets []string
	for _, p := range slices.Sorted(maps.Keys(s.Progress)) {
		offsets = append(offsets, fmt.Sprintf("%d:%d", p, s.Progress[p].Next))
	}
	props := iceberg.Properties{keyTopic: s.Catalog.Topic, keyOffsets: strings.Join(offsets, ",")}
	for _, t := range s.Catalog.Tables {
		if t.Serial == s.Catalog.Served {
			props[keyGeneration], props[keySpace] = fmt.Sprint(t.Generation), fmt.Sprint(t.Space)
		}
	}
	return props
}
