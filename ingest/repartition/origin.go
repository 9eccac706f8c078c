package repartition

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest"
)

// originHeader holds "partition/offset" of a copy's origin.
const originHeader = "giantstream-origin"

const (
	partitionBits = 16
	// copied is above every offset that a topic reaches.
	copied = 1 << 62
	// epochBits is where the epoch begins in the offset of an origin. No topic gets to 2^40 records.
	epochBits = 40
)

// Version returns the offset part of the version of a record's facts, for the records of an
// internal topic: from the origin for a copy, else the record's own offset.
func Version(m *kafka.Message) int64 {
	for i := range m.Headers {
		if m.Headers[i].Key == originHeader {
			if v, ok := parseOrigin(m.Headers[i].Value); ok {
				return v
			}
		}
	}
	return m.Offset
}

// OriginOf returns the place of the record that another is a copy of, with the epoch of its topic; false if that is no
// copy.
func OriginOf(m *kafka.Message) (partition int, epoch, offset int64, ok bool) {
	v := Version(m)
	at := v &^ copied >> partitionBits
	return int(v & (1<<partitionBits - 1)), at >> epochBits, at & (1<<epochBits - 1), v&copied != 0
}

func parseOrigin(b []byte) (version int64, ok bool) {
	p, o, found := bytes.Cut(b, []byte{'/'})
	partition, err := strconv.ParseUint(string(p), 10, partitionBits)
	if err != nil || !found {
		return 0, false
	}
	offset, err := strconv.ParseUint(string(o), 10, 62-partitionBits)
	if err != nil {
		return 0, false
	}
	return copied | int64(offset)<<partitionBits | int64(partition), true
}

// Origin returns the header of a record that is made of another one, and has its version: the other's own header if
// that is a copy.
func Origin(m *kafka.Message) kafka.Header {
	for _, h := range m.Headers {
		if h.Key == originHeader {
			return h
		}
	}
	return origin(m, 0)
}

func origin(m *kafka.Message, epoch int64) kafka.Header {
	return kafka.Header{Key: originHeader, Value: fmt.Appendf(nil, "%d/%d", m.Partition, epoch<<epochBits+m.Offset)}
}

// withOrigin returns the headers of the copy of a record of a topic of some epoch.
func withOrigin(m *kafka.Message, epoch int64) []kafka.Header {
	headers := make([]kafka.Header, 0, len(m.Headers)+1)
	for _, h := range m.Headers {
		if h.Key != originHeader && h.Key != ingest.KeyHeader { // a copy of a copy is of another pipeline's
			headers = append(headers, h)
		}
	}
	return append(headers, origin(m, epoch))
}
