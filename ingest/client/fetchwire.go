package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// maxAnswerBytes bounds the answer to a fetch. A broker answers with a few MiB at most, and with a
// whole batch if the first one is larger, which message.max.bytes of the broker bounds.
const maxAnswerBytes = 128 << 20

// fetchExchange is a fetch request whose answer is taken as bytes. kafka-go's own decoder would
// decompress all batches into memory before anyone sees how large they are, and drops what follows
// a damaged record without an error.
type fetchExchange struct {
	*fetch.Request
	clientID string
	version  int16
}

func newFetchExchange(
	clientID, topic string, partition int, offset int64, maxBytes int, maxWait time.Duration,
	isolation kafka.IsolationLevel,
) *fetchExchange {
	return &fetchExchange{clientID: clientID, Request: &fetch.Request{
		ReplicaID:      -1,
		MaxWaitTime:    int32(maxWait.Milliseconds()),
		MinBytes:       1,
		MaxBytes:       int32(maxBytes),
		IsolationLevel: int8(isolation),
		SessionID:      -1,
		SessionEpoch:   -1,
		Topics: []fetch.RequestTopic{{Topic: topic, Partitions: []fetch.RequestPartition{{
			Partition: int32(partition), CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1,
			PartitionMaxBytes: int32(maxBytes),
		}}}},
	}}
}

// Required implements protocol.RawExchanger.
func (x *fetchExchange) Required(versions map[protocol.ApiKey]int16) bool {
	x.version = versions[protocol.Fetch]
	return true
}

// RawExchange implements protocol.RawExchanger.
func (x *fetchExchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	const correlation = 1 // a connection has one request at a time
	if err := protocol.WriteRequest(rw, x.version, correlation, x.clientID, x.Request); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, err
	}
	size, id := int32(binary.BigEndian.Uint32(head[:4])), int32(binary.BigEndian.Uint32(head[4:]))
	switch {
	case id != correlation:
		return nil, fmt.Errorf("the broker answered request %d, not %d", id, correlation)
	case size < 4 || size-4 > maxAnswerBytes:
		return nil, fmt.Errorf("the broker's answer has %d bytes; at most %d are read: lower the topic's "+
			"max.message.bytes", size-4, maxAnswerBytes)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(rw, body); err != nil {
		return nil, err
	}
	a, err := parseFetchAnswer(body, x.version)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// fetchAnswer is the answer about the one partition that was asked for.
type fetchAnswer struct {
	highWater int64
	// stable is the offset of the first record of an open transaction, or highWater.
	stable  int64
	aborted []abortedTransaction
	err     error // the broker's
	batches []byte
	// throttle is how long the broker wants to be left alone; above 0, it has not looked for records.
	throttle time.Duration
}

// ApiKey implements protocol.Message.
func (*fetchAnswer) ApiKey() protocol.ApiKey { return protocol.Fetch }

var errBadAnswer = errors.New("the broker's answer to a fetch cannot be read")

// parseFetchAnswer reads a FetchResponse of version 0 to 11, which are not flexible
// (https://kafka.apache.org/protocol.html#The_Messages_Fetch).
func parseFetchAnswer(body []byte, version int16) (*fetchAnswer, error) {
	c := cursor{b: body}
	a := &fetchAnswer{}
	code := int16(0)
	throttle := int32(0)
	if version >= 1 {
		throttle = c.int32()
	}
	if version >= 7 {
		code = c.int16()
		c.int32() // session
	}
	switch topics := c.int32(); {
	case c.bad:
		return nil, errBadAnswer
	case topics <= 0 && code != 0:
		a.err = kafka.Error(code)
		return a, nil
	case topics <= 0 && throttle > 0: // the client is over its quota
		a.throttle = time.Duration(throttle) * time.Millisecond
		return a, nil
	case topics <= 0:
		return nil, protocol.ErrNoTopic
	}
	c.take(int(c.int16())) // the topic's name
	if c.int32() <= 0 && !c.bad {
		return nil, protocol.ErrNoPartition
	}
	c.int32() // partition
	if partition := c.int16(); partition != 0 {
		code = partition
	}
	a.highWater = c.int64()
	a.stable = a.highWater
	if version >= 4 {
		a.stable = c.int64()
	}
	if version >= 5 {
		c.int64() // log start offset
	}
	if version >= 4 {
		n := max(0, int(c.int32()))
		const size = 8 + 8
		for aborted := (cursor{b: c.take(n * size)}); len(aborted.b) > 0; {
			a.aborted = append(a.aborted, abortedTransaction{aborted.int64(), aborted.int64()})
		}
	}
	if version >= 11 {
		c.int32() // preferred replica
	}
	a.batches = c.take(max(0, int(c.int32())))
	if c.bad {
		return nil, errBadAnswer
	}
	if code != 0 {
		a.err = kafka.Error(code)
	}
	return a, nil
}

// cursor reads big-endian integers. Past the end it reads zeros and is bad.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.b, c.bad = nil, true
		return nil
	}
	head := c.b[:n:n]
	c.b = c.b[n:]
	return head
}

func (c *cursor) integer(size int) (n uint64) {
	for _, b := range c.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (c *cursor) int8() int8   { return int8(c.integer(1)) }
func (c *cursor) int16() int16 { return int16(c.integer(2)) }
func (c *cursor) int32() int32 { return int32(c.integer(4)) }
func (c *cursor) int64() int64 { return int64(c.integer(8)) }

// varint reads a zigzag varint.
func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

// bytes reads as many bytes as its argument says; -1 is nil.
func (c *cursor) bytes(n int64) []byte {
	if n < 0 {
		return nil
	}
	if n > int64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	return c.take(int(n))
}
