package mirror

import (
	"bytes"
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
// format 3 the weight (a float32, little-endian), in format 4 the weight (its bits plus 1, 0 if none is
// stated) and the kind after its length (1 byte), the id of the asserting end. The key is the id of the
// far end.
const (
	formatOld    = 1 // without the pipeline
	format       = 2
	formatWeight = 3
	formatKind   = 4

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
	of := byte(format)
	switch {
	case m.Kind.Name != "":
		of = formatKind
	case m.Weight.Stated():
		of = formatWeight
	}
	b = append(append(b, of), from[:]...)
	b = append(b, op, m.Version.Rank)
	b = binary.AppendVarint(b, m.Version.EventTime)
	b = binary.AppendVarint(b, m.Version.Offset)
	switch of {
	case formatWeight:
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(m.Weight.Float()))
	case formatKind:
		b = binary.LittleEndian.AppendUint32(b, uint32(m.Weight))
		b = append(append(b, byte(len(m.Kind.Name))), m.Kind.Name...)
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
	of := byte(0)
	if len(value) > 0 {
		of = value[0]
	}
	if len(value) > len(Pipeline{}) && of >= format && of <= formatKind {
		from = (*Pipeline)(value[1 : 1+len(Pipeline{})])
		value = value[len(Pipeline{}):] // what it would be without
	} else if of != formatOld {
		return m, nil, fmt.Errorf("not a mirror record of format %d to %d", formatOld, formatKind)
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
	if of >= formatWeight {
		if rest, err = readLink(&m, of, rest); err != nil {
			return m, nil, err
		}
	}
	for _, id := range [][]byte{key, rest} {
		if len(id) == 0 || len(id) > decode.MaxIDBytes || !utf8.Valid(id) {
			return m, nil, fmt.Errorf("an id is empty, longer than %d bytes or not UTF-8", decode.MaxIDBytes)
		}
	}
	m.ID, m.Other = string(key), string(rest)
	return m, from, nil
}

// readLink reads weight and kind, and returns what follows.
func readLink(m *mutation.Mutation, of byte, b []byte) (rest []byte, err error) {
	if len(b) < weightBytes {
		return nil, errors.New("the record is cut off")
	}
	bits := binary.LittleEndian.Uint32(b)
	m.Weight, rest = mutation.Weight(bits), b[weightBytes:]
	if of == formatWeight {
		m.Weight++
	}
	if !m.Weight.Valid() || of == formatWeight && !m.Weight.Stated() {
		return nil, errors.New("the weight is negative or no finite number")
	}
	if m.Weight.Stated() && m.Op != mutation.MirrorPut {
		return nil, errors.New("the record takes a link back with a weight")
	}
	if of == formatWeight {
		return rest, nil
	}
	if len(rest) == 0 || len(rest) <= int(rest[0]) {
		return nil, errors.New("the record is cut off")
	}
	kind := rest[1 : 1+int(rest[0])]
	if len(kind) == 0 || len(kind) > mutation.MaxKindBytes || !utf8.Valid(kind) || bytes.IndexByte(kind, 0) >= 0 {
		return nil, fmt.Errorf("the kind is empty, longer than %d bytes, not UTF-8 or has a zero byte",
			mutation.MaxKindBytes)
	}
	m.Kind.Name = string(kind)
	return rest[1+len(kind):], nil
}
