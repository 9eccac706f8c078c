package mirror

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/stream"
)

// A value is: format (1 byte), op (1 byte: 1 put, 2 delete), rank (1 byte), event time in
// microseconds (varint, zigzag), offset (varint, zigzag), the id of the
// asserting end. The key is the id of the far end.
const (
	format   = 1
	opPut    = 1
	opDelete = 2
)

// appendValue encodes a MirrorPut or MirrorDelete.
func appendValue(b []byte, m *stream.Mutation) ([]byte, error) {
	op := byte(opPut)
	switch m.Op {
	case stream.MirrorPut:
	case stream.MirrorDelete:
		op = opDelete
	default:
		return nil, fmt.Errorf("mirror: cannot publish op %d", m.Op)
	}
	b = append(b, format, op, m.Version.Rank)
	b = binary.AppendVarint(b, m.Version.EventTime)
	b = binary.AppendVarint(b, m.Version.Offset)
	return append(b, m.Other...), nil
}

// Decoder decodes the records of the mirror topic.
type Decoder struct{ shards int }

// NewDecoder returns a decoder for a pipeline with that many shards.
func NewDecoder(shards int) *Decoder { return &Decoder{shards} }

// Decode appends the mutation of a record to dst.
func (d *Decoder) Decode(r decode.Record, dst []stream.Mutation) ([]stream.Mutation, *decode.Fault) {
	m, err := parse(r.Key, r.Value)
	if err != nil {
		return dst, &decode.Fault{Code: decode.BadMirror, Message: err.Error()}
	}
	if p := client.Partition(r.Key, d.shards); p != r.Partition {
		return dst, &decode.Fault{Code: decode.KeyMismatch, Message: fmt.Sprintf("the key belongs in partition %d of %d, the record is in partition %d", p, d.shards, r.Partition)}
	}
	return append(dst, m), nil
}

func parse(key, value []byte) (stream.Mutation, error) {
	var m stream.Mutation
	if len(value) < 3 || value[0] != format {
		return m, fmt.Errorf("not a mirror record of format %d", format)
	}
	switch value[1] {
	case opPut:
		m.Op = stream.MirrorPut
	case opDelete:
		m.Op = stream.MirrorDelete
	default:
		return m, fmt.Errorf("unknown op %d", value[1])
	}
	m.Version.Rank = value[2]
	rest := value[3:]
	for _, dst := range []*int64{&m.Version.EventTime, &m.Version.Offset} {
		v, n := binary.Varint(rest)
		if n <= 0 {
			return m, fmt.Errorf("a number is cut off or too large")
		}
		*dst, rest = v, rest[n:]
	}
	for _, id := range [][]byte{key, rest} {
		if len(id) == 0 || len(id) > decode.MaxIDBytes || !utf8.Valid(id) {
			return m, fmt.Errorf("an id is empty, longer than %d bytes or not UTF-8", decode.MaxIDBytes)
		}
	}
	m.ID, m.Other = string(key), string(rest)
	return m, nil
}
