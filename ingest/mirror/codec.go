package mirror

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// A value is: format (1 byte), from format 2 on the id of the pipeline (8 bytes), op (1 byte: 1 put, 2
// delete), rank (1 byte), event time in microseconds (varint, zigzag), offset (varint, zigzag), in
// format 3 the weight (a float32, little-endian), the id of the asserting end. The key is the id of the
// far end.
const (
	formatOld    = 1 // without the pipeline
	format       = 2
	formatWeight = 3

	opPut    = 1
	opDelete = 2
)

// weightBytes is the length of a weight.
const weightBytes = 4

// Pipeline is the id of a pipeline. Its mirror topic holds records of its own, and of older versions,
// which did not name it.
type Pipeline [8]byte

// ParsePipeline reads 16 hexadecimal digits.
func ParsePipeline(id string) (p Pipeline, err error) {
	data, err := hex.DecodeString(id)
	if err != nil || len(data) != len(p) {
		return p, fmt.Errorf("%q is no id of a pipeline", id)
	}
	return Pipeline(data), nil
}

// String is what ParsePipeline reads.
func (p Pipeline) String() string { return hex.EncodeToString(p[:]) }

// appendValue encodes a MirrorPut or MirrorDelete.
func appendValue(b []byte, from Pipeline, m *mutation.Mutation) ([]byte, error) {
	op := byte(opPut)
	switch m.Op {
	case mutation.MirrorPut:
	case mutation.MirrorDelete:
		op = opDelete
	default:
		return nil, fmt.Errorf("mirror: cannot publish op %d", m.Op)
	}
	if m.Weight.Stated() {
		b = append(b, formatWeight)
	} else {
		b = append(b, format)
	}
	b = append(b, from[:]...)
	b = append(b, op, m.Version.Rank)
	b = binary.AppendVarint(b, m.Version.EventTime)
	b = binary.AppendVarint(b, m.Version.Offset)
	if m.Weight.Stated() {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(m.Weight.Float()))
	}
	return append(b, m.Other...), nil
}

// Decoder decodes the records of the mirror topic.
type Decoder struct {
	shards   int
	pipeline Pipeline
}

// NewDecoder returns a decoder for a pipeline with that many shards.
func NewDecoder(shards int, pipeline Pipeline) *Decoder { return &Decoder{shards, pipeline} }

// Decode appends the mutation of a record to dst.
func (d *Decoder) Decode(r decode.Record, dst []mutation.Mutation) ([]mutation.Mutation, *decode.Fault) {
	m, from, err := parse(r.Key, r.Value)
	if err == nil && from != nil && *from != d.pipeline {
		err = fmt.Errorf("it was written by pipeline %s, and this is pipeline %s: two pipelines have one mirror topic",
			from, d.pipeline)
	}
	if err != nil {
		return dst, &decode.Fault{Code: decode.BadMirror, Message: err.Error()}
	}
	if p := client.Partition(r.Key, d.shards); p != r.Partition {
		return dst, &decode.Fault{Code: decode.KeyMismatch, Message: fmt.Sprintf("the key belongs in partition %d "+
			"of %d, the record is in partition %d", p, d.shards, r.Partition)}
	}
	return append(dst, m), nil
}

// parse returns the mutation of a record, and the pipeline that wrote it, nil if it does not say.
func parse(key, value []byte) (m mutation.Mutation, from *Pipeline, err error) {
	weighed := len(value) > 0 && value[0] == formatWeight
	if len(value) > len(Pipeline{}) && (weighed || value[0] == format) {
		from = (*Pipeline)(value[1 : 1+len(Pipeline{})])
		value = value[len(Pipeline{}):] // what it would be without
	} else if len(value) == 0 || value[0] != formatOld {
		return m, nil, fmt.Errorf("not a mirror record of format %d to %d", formatOld, formatWeight)
	}
	if len(value) < 3 {
		return m, nil, errors.New("the record is cut off")
	}
	switch value[1] {
	case opPut:
		m.Op = mutation.MirrorPut
	case opDelete:
		m.Op = mutation.MirrorDelete
	default:
		return m, nil, fmt.Errorf("unknown op %d", value[1])
	}
	m.Version.Rank = value[2]
	rest := value[3:]
	for _, dst := range []*int64{&m.Version.EventTime, &m.Version.Offset} {
		v, n := binary.Varint(rest)
		if n <= 0 {
			return m, nil, fmt.Errorf("a number is cut off or too large")
		}
		*dst, rest = v, rest[n:]
	}
	if weighed {
		if len(rest) < weightBytes || m.Op != mutation.MirrorPut {
			return m, nil, errors.New("the record is cut off, or takes a link back with a weight")
		}
		weight := math.Float32frombits(binary.LittleEndian.Uint32(rest))
		if !(weight >= 0) || math.IsInf(float64(weight), 0) {
			return m, nil, fmt.Errorf("the weight is %v", weight)
		}
		m.Weight, rest = mutation.WeightOf(weight), rest[weightBytes:]
	}
	for _, id := range [][]byte{key, rest} {
		if len(id) == 0 || len(id) > decode.MaxIDBytes || !utf8.Valid(id) {
			return m, nil, fmt.Errorf("an id is empty, longer than %d bytes or not UTF-8", decode.MaxIDBytes)
		}
	}
	m.ID, m.Other = string(key), string(rest)
	return m, from, nil
}
