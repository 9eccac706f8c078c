package rows

import (
	"giantstream/internal/vector"
	"giantstream/sink/parquetio"
)

// Vectors are the vectors that an input states of a node. A window has such a row where they have changed.
type Vectors struct {
	NodeID string `parquet:"node_id"`
	// Input is the number of the input that states the vectors. A node has those of all inputs.
	Input int32 `parquet:"input"`
	// Names are ascending. Without any, the input states no vector of the node any more.
	Names []string `parquet:"names,list"`
	// Bits of each number, 16 or 32, by vector.
	Bits []int32 `parquet:"bits,list"`
	// Values are the numbers of each vector one after the other, little-endian IEEE 754.
	Values [][]byte `parquet:"vectors,list"`
	// EventTime is that of the statement that moved the row, in microseconds since the Unix epoch. A later one that
	// says the same moves none.
	EventTime int64 `parquet:"event_time,timestamp(microsecond)"`
}

// Numbers returns the numbers of vector i.
func (r *Vectors) Numbers(i int) []float32 { return vector.Numbers(r.Values[i], int(r.Bits[i]/8)) }

// MemoryBytes estimates the row's size in memory.
func (r *Vectors) MemoryBytes() int64 { return int64(r.size()) + 128 + 64*int64(len(r.Names)) }

// size estimates the raw bytes of the row in its columns.
func (r *Vectors) size() int {
	n := 24 + len(r.NodeID)
	for i := range r.Names {
		n += 12 + len(r.Names[i]) + len(r.Values[i])
	}
	return n
}

// The columns of vectors that other tables lack.
const (
	ColNames   = "names"
	ColBits    = "bits"
	ColVectors = "vectors"
)

// NodeVectors is the table of vectors. Its rows are in the order of the nodes, and those of a node in that of the
// inputs.
var NodeVectors = &Table[Vectors]{
	Name:        "vectors",
	Key:         func(r *Vectors) string { return r.NodeID + string([]byte{0, byte(r.Input)}) },
	EventTime:   func(r *Vectors) int64 { return r.EventTime },
	KeyColumns:  []string{ColNodeID, ColInput, ColEventTime},
	MemoryBytes: (*Vectors).MemoryBytes,
	format: parquetio.Format[Vectors]{Name: "vectors/1", Size: (*Vectors).size,
		Generation: func(*Vectors) int64 { return 0 }, Unbounded: []string{ColVectors + ".list.element"}},
	columns: []parquetio.Column[Vectors]{
		parquetio.Scalar(ColNodeID, parquetio.String(), func(r *Vectors, v string) { r.NodeID = v }),
		parquetio.Scalar(ColInput, parquetio.Int32(), func(r *Vectors, v int32) { r.Input = v }),
		parquetio.List(ColNames, parquetio.String(), func(r *Vectors, v []string) { r.Names = v }),
		parquetio.List(ColBits, parquetio.Int32(), func(r *Vectors, v []int32) { r.Bits = v }),
		parquetio.List(ColVectors, parquetio.Bytes(), func(r *Vectors, v [][]byte) { r.Values = v }),
		parquetio.Scalar(ColEventTime, parquetio.Int64(), func(r *Vectors, v int64) { r.EventTime = v }),
	},
}
