// Package ordered has the records of a topic that says what nodes are ordered with, as the generation being served
// embeds it. A process that holds all orders sends them, and shards read them as vectors (sink/rows.OrderedVector). So
// published embeddings follow the orders, and are a function of the topics
// (docs/decisions/0027-rows-of-orders-are-records.md).
package ordered

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/decode"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// Mapping maps the records.
func Mapping() decode.AttributesMapping {
	return decode.AttributesMapping{ID: "id", Vectors: []decode.Vector{{Name: rows.OrderedName, Path: "row",
		Length: rows.OrderedLength, Precision: mutation.Float32}}}
}

// Record says that a node has a row of bfloat16, nil for none, by the directions of a generation.
func Record(topic, id string, generation int64, row []uint16, at time.Time) kafka.Message {
	var numbers []byte
	for _, x := range rows.OrderedVector(generation, row) {
		numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(x))
	}
	value := append([]byte(`{"row":"`), base64.StdEncoding.EncodeToString(numbers)...)
	return kafka.Message{Topic: topic, Key: []byte(id), Value: append(value, `"}`...), Time: at}
}
