package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/recordtrace"

	"github.com/segmentio/kafka-go"
)

// Origin is where a record came from. A letter has exactly one: a place in a topic or, for a record
// that a backfill could not send, a line in a file.
type Origin struct {
	Topic     string
	Partition int
	Offset    int64
	// CopiedTo is the topic where the record was read as a copy (package repartition), "" if it was read in Topic.
	// Epoch is how often Topic had been created again by then; 0 unless it is copied.
	CopiedTo string
	Epoch    int64
	// File and Line (from 1), "" and 0 for records of a topic. Topic is where the line was meant to
	// go.
	File string
	Line int64
}

// String gives topic/partition/offset or file:line. Of a topic that had been created again, it ends in how often.
func (o Origin) String() string {
	switch {
	case o.File != "":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.Epoch > 0:
		return fmt.Sprintf("%s/%d/%d@%d", o.Topic, o.Partition, o.Offset, o.Epoch)
	}
	return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)
}

// Letter is a dead letter.
type Letter struct {
	Origin
	Code    decode.Code
	Message string
	// Key and Value are the record's own bytes; nil is null.
	Key, Value []byte
	// OwnKey is that of the original, if the record is a copy with an id out of it as the key (ingest.KeyHeader); nil
	// if not.
	OwnKey []byte
	// Copy is where in CopiedTo the record was read; nil of others, and of marks.
	Copy *CopyPlace
	// Time is the record's timestamp.
	Time time.Time
	// At is when the letter was written.
	At time.Time
	// Size of the original value. Value is cut to CutBytes when Size is over maxValueBytes; SHA256
	// (hex) is then that of the whole.
	Size   int64
	SHA256 string
	// ReplayOf is the origin of the letter that this record was replayed from, "" if it was not.
	ReplayOf string
	// Trace has the headers of the record's trace, if it has one (W3C Trace Context).
	Trace []kafka.Header
	// Replayed is when the letter's record was sent again, zero if it was not since the letter was
	// written.
	Replayed time.Time
	// Dismissed is when people have dismissed the letter, for Reason; zero if they have not since it was written. Of
	// Replayed and Dismissed the later one is set.
	Dismissed time.Time
	Reason    string
}

// CopyPlace is where a copy was read.
type CopyPlace struct {
	Partition int
	Offset    int64
}

// ReadIn is the topic where the record was read, and a replay sends it.
func (l *Letter) ReadIn() string { return cmp.Or(l.CopiedTo, l.Topic) }

// Place is where the record was read.
func (l *Letter) Place() Origin {
	if l.Copy == nil {
		return l.Origin
	}
	return Origin{Topic: l.CopiedTo, Partition: l.Copy.Partition, Offset: l.Copy.Offset}
}

// OfCopy makes the letter one of a copy of a record of the origin. It was one of the copy's own place.
func (l *Letter) OfCopy(original Origin) {
	original.CopiedTo = l.Topic
	l.Copy = &CopyPlace{l.Partition, l.Offset}
	l.Origin = original
}

// Open reports whether nothing has become of the letter yet.
func (l *Letter) Open() bool { return l.Replayed.IsZero() && l.Dismissed.IsZero() }

// Foreign reports whether the record on the dead-letter topic is not a letter but another program's.
func (l *Letter) Foreign() bool { return l.Code == decode.Foreign }

// foreign describes a record that is not a letter; err says why not. Its origin is its own place.
func foreign(m kafka.Message, err error) Letter {
	return Letter{
		Origin: Origin{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset},
		Code:   decode.Foreign, Message: err.Error(),
		Key: m.Key, Value: m.Value, Size: int64(len(m.Value)), Time: readable(m.Time), At: readable(m.Time),
	}
}

// Values over maxValueBytes, which a broker with default settings would refuse, are cut to their
// first CutBytes.
const (
	maxValueBytes = 900_000
	CutBytes      = client.CutBytes
)

// Truncated reports whether Value is only the beginning.
func (l *Letter) Truncated() bool { return l.Size > int64(len(l.Value)) }

// formatVersion is the version of the headers.
const formatVersion = "1"

// Header names.
const (
	hFormat    = "dlq-format"
	hTopic     = "dlq-topic"
	hPartition = "dlq-partition"
	hOffset    = "dlq-offset"
	hFile      = "dlq-file"
	hLine      = "dlq-line"
	hCode      = "dlq-code"
	hMessage   = "dlq-message"
	hTime      = "dlq-timestamp"
	hSize      = "dlq-size"
	hSHA256    = "dlq-sha256"
	hReplayOf  = "dlq-replay-of"
	hMark      = "dlq-mark"
	hReason    = "dlq-reason"
	hEpoch     = "dlq-epoch"
	hCopy      = "dlq-copied-to"
	hCopyPart  = "dlq-copy-partition"
	hCopyAt    = "dlq-copy-offset"
)

// What the header of a mark says of a letter. A mark is a record with the letter's origin: the letter's record was sent
// again, or people have dismissed it.
const (
	replayedMark  = "replayed"
	dismissedMark = "dismissed"
)

// cut shortens a value that is too large for the topic.
func (l *Letter) cut() {
	if l.Size == 0 {
		l.Size = int64(len(l.Value))
	}
	if len(l.Value) <= maxValueBytes {
		return
	}
	sum := sha256.Sum256(l.Value)
	l.SHA256, l.Value = hex.EncodeToString(sum[:]), l.Value[:CutBytes]
}

// lastTime is the end of the years that RFC 3339 can write.
var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)

// readable bounds a timestamp, which in Kafka can lie beyond the years that RFC 3339 can write: a producer that counts
// microseconds in the place of milliseconds gets to the year 56000.
func readable(t time.Time) time.Time {
	if t.After(lastTime) {
		return lastTime
	}
	return t
}

// message encodes the letter for a topic.
func (l *Letter) message(topic string) kafka.Message {
	m := kafka.Message{Topic: topic, Key: l.Key, Value: l.Value, Time: l.At}
	add := func(name, value string) {
		m.Headers = append(m.Headers, kafka.Header{Key: name, Value: []byte(value)})
	}
	add(hFormat, formatVersion)
	add(hTopic, l.Topic)
	if l.File != "" {
		add(hFile, l.File)
		add(hLine, strconv.FormatInt(l.Line, 10))
	} else {
		add(hPartition, strconv.Itoa(l.Partition))
		add(hOffset, strconv.FormatInt(l.Offset, 10))
	}
	if l.Epoch > 0 {
		add(hEpoch, strconv.FormatInt(l.Epoch, 10))
	}
	if l.CopiedTo != "" {
		add(hCopy, l.CopiedTo)
	}
	if l.Copy != nil {
		add(hCopyPart, strconv.Itoa(l.Copy.Partition))
		add(hCopyAt, strconv.FormatInt(l.Copy.Offset, 10))
	}
	add(hCode, string(l.Code))
	add(hMessage, l.Message)
	add(hTime, readable(l.Time).UTC().Format(time.RFC3339Nano))
	if l.Truncated() {
		add(hSize, strconv.FormatInt(l.Size, 10))
		add(hSHA256, l.SHA256)
	}
	if l.ReplayOf != "" {
		add(hReplayOf, l.ReplayOf)
	}
	m.Headers = append(m.Headers, l.carried()...)
	return m
}

// carried are the headers that the letter and a replay share with the record.
func (l *Letter) carried() []kafka.Header {
	if l.OwnKey == nil {
		return l.Trace
	}
	return append([]kafka.Header{{Key: ingest.KeyHeader, Value: l.OwnKey}}, l.Trace...)
}

// closing says what has become of a letter.
type closing struct {
	what   string // replayedMark or dismissedMark
	at     time.Time
	reason string
}

// mark makes the record that notes what has become of a letter.
func mark(topic string, o Origin, c closing) kafka.Message {
	l := Letter{Origin: o, Code: decode.Code(c.what), At: c.at, Time: c.at}
	m := l.message(topic)
	m.Key = []byte(o.String()) // a compacted topic keeps one of each
	if o.CopiedTo != "" {
		m.Key = fmt.Append(m.Key, " in ", o.CopiedTo) // pipelines may share a source and this topic
	}
	m.Headers = append(m.Headers, kafka.Header{Key: hMark, Value: []byte(c.what)})
	if c.reason != "" {
		m.Headers = append(m.Headers, kafka.Header{Key: hReason, Value: []byte(c.reason)})
	}
	return m
}

// marked returns what a mark says, and of which letter; ok is false if the record is none.
func marked(m *kafka.Message) (o Origin, c closing, ok bool) {
	for _, h := range m.Headers {
		switch h.Key {
		case hMark:
			c.what = string(h.Value)
		case hReason:
			c.reason = string(h.Value)
		}
	}
	if c.what != replayedMark && c.what != dismissedMark {
		return o, c, false
	}
	l, err := Parse(*m)
	c.at = m.Time
	return l.Origin, c, err == nil
}

// errNotALetter: the record on the dead-letter topic has no usable headers.
var errNotALetter = errors.New("not a dead letter")

// Parse decodes a record of the dead-letter topic.
func Parse(m kafka.Message) (Letter, error) {
	h := map[string]string{}
	for _, x := range m.Headers {
		h[x.Key] = string(x.Value)
	}
	l := Letter{
		Origin:   Origin{Topic: h[hTopic], CopiedTo: h[hCopy], File: h[hFile]},
		Code:     decode.Code(h[hCode]),
		Message:  h[hMessage],
		Key:      m.Key,
		Value:    m.Value,
		At:       m.Time,
		Size:     int64(len(m.Value)),
		SHA256:   h[hSHA256],
		ReplayOf: h[hReplayOf],
		Trace:    recordtrace.Given(m.Headers),
	}
	if key, ok := h[ingest.KeyHeader]; ok {
		l.OwnKey = []byte(key)
	}
	var errs []error
	if l.Foreign() { // the code of records that are none, so none has it
		errs = append(errs, errNotALetter)
	}
	integer := func(name string, dst *int64) {
		if v, ok := h[name]; ok {
			n, err := strconv.ParseInt(v, 10, 64)
			*dst = n
			errs = append(errs, err)
		}
	}
	var partition, copied int64
	integer(hPartition, &partition)
	integer(hEpoch, &l.Epoch)
	if _, ok := h[hCopyAt]; ok {
		l.Copy = &CopyPlace{}
		integer(hCopyPart, &copied)
		integer(hCopyAt, &l.Copy.Offset)
		l.Copy.Partition = int(copied)
	}
	integer(hOffset, &l.Offset)
	integer(hLine, &l.Line)
	integer(hSize, &l.Size)
	l.Partition = int(partition)
	t, err := time.Parse(time.RFC3339Nano, h[hTime])
	l.Time = t
	if err := errors.Join(append(errs, err)...); err != nil || h[hFormat] != formatVersion || l.Topic == "" {
		return Letter{}, fmt.Errorf("%w: record %s/%d/%d (headers of format %q are read, found %q)", errNotALetter,
			m.Topic, m.Partition, m.Offset, formatVersion, h[hFormat])
	}
	return l, nil
}
