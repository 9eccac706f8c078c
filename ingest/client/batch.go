package client

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
)

// errBadBatch: a batch of records is damaged, or is none.
var errBadBatch = errors.New("damaged batch")

// batch is a record batch, of format 2 or a message of the older ones, whose records are read one
// after the other. It decompresses as it goes and holds one record.
type batch struct {
	r     source
	close func() error
	// read returns the next record, or io.EOF.
	read func(*batch) (record, error)
	// last offset of the batch.
	last int64

	count int32 // records to come, format 2
	base  int64
	first int64 // timestamp in milliseconds
	// appended is when the broker has appended the batch, if the topic's timestamps say that
	// (message.timestamp.type=LogAppendTime), in milliseconds. Those of the records are the producer's.
	appended *int64
	shift    int64           // of offsets, formats 0 and 1
	from     int64           // records before it are passed over
	limit    int             // bytes of a record
	head     prologue        // of the record that is read
	ctx      context.Context //nolint:containedctx // of the call of next that is under way
}

// record is one record.
type record struct {
	kafka.Message
	passed bool // before the offset that was asked for: only its offset is known
	// cut: the record is over the limit. Its value is the beginning of size bytes with the hash.
	cut    bool
	size   int64
	sha256 string
}

// maxHeaders bounds the headers of a record, which take more memory than bytes.
const maxHeaders = 10_000

// Attributes of a batch of format 2.
const (
	codecMask       = 7
	appendedFlag    = 1 << 3
	transactionFlag = 1 << 4
	controlFlag     = 1 << 5
)

// batchHeader is the size of a batch of format 2 without its records.
const batchHeader = 61

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// nextBatch splits the first batch off data. It returns nil if data has no whole one.
func nextBatch(data []byte) (first, rest []byte, err error) {
	const head = 8 + 4 // offset and length
	if len(data) < head {
		return nil, nil, nil
	}
	n := int32(binary.BigEndian.Uint32(data[8:]))
	switch {
	case n < 0:
		return nil, nil, fmt.Errorf("%w: a length of %d", errBadBatch, n)
	case int(n) > len(data)-head:
		return nil, nil, nil
	}
	return data[:head+int(n)], data[head+int(n):], nil
}

// openBatch begins to read a batch from an offset on. What is of no use to a reader, such as records
// of aborted transactions, is not in it.
func (d *decompressors) openBatch(data []byte, from int64, limit int, t *transactions) (*batch, error) {
	const magicAt = 16
	if len(data) <= magicAt {
		return nil, fmt.Errorf("%w: %d bytes", errBadBatch, len(data))
	}
	b := &batch{from: from, limit: limit}
	switch magic := data[magicAt]; magic {
	case 0, 1:
		return b, b.openMessage(d, data)
	case 2:
		return b, b.open(d, data, t)
	default:
		return nil, fmt.Errorf("%w: format %d", errBadBatch, magic)
	}
}

// open reads the header of a batch of format 2
// (https://kafka.apache.org/documentation/#recordbatch).
func (b *batch) open(d *decompressors, data []byte, t *transactions) error {
	if len(data) < batchHeader {
		return fmt.Errorf("%w: %d bytes", errBadBatch, len(data))
	}
	c := cursor{b: data}
	b.base = c.int64()
	c.take(4 + 4 + 1) // length, leader epoch, format
	sum := uint32(c.int32())
	if found := crc32.Checksum(c.b, castagnoli); found != sum {
		return fmt.Errorf("%w: CRC-32C %08x, want %08x", errBadBatch, found, sum)
	}
	attributes := c.int16()
	b.last = b.base + int64(c.int32())
	b.first = c.int64()
	newest := c.int64()
	if attributes&appendedFlag != 0 {
		b.appended = &newest
	}
	producer := c.int64()
	c.take(2 + 4) // the producer's epoch and sequence
	b.count = c.int32()
	data = c.b
	if t.drops(b, attributes, producer, data) || b.last < b.from {
		b.count, data = 0, nil
	}
	b.read = (*batch).readRecord
	return b.decompress(d, compress.Compression(attributes&codecMask), data)
}

func (b *batch) decompress(d *decompressors, codec compress.Compression, data []byte) error {
	if codec == compress.None || len(data) == 0 {
		b.r, b.close = &whole{data}, func() error { return nil }
		return nil
	}
	r, err := d.open(codec, data)
	if err != nil {
		return err
	}
	b.close = r.Close
	b.r = &unpacked{Reader: bufio.NewReaderSize(interruptible{r, b}, 32<<10)}
	return nil
}

// next returns the next record. After the last it returns io.EOF, and the batch is closed.
func (b *batch) next(ctx context.Context) (record, error) {
	b.ctx = ctx
	rec, err := b.read(b)
	if err != nil {
		_ = b.close() // everything that is wanted has been read
	}
	return rec, err
}

func (b *batch) readRecord() (record, error) {
	if b.count <= 0 {
		return record{}, io.EOF
	}
	b.count--
	b.head = prologue{r: b.r}
	p := &b.head
	length := p.varint()
	p.read = 0
	p.ReadByte() //nolint:errcheck // attributes, unused; prologue keeps the error
	at := b.first + p.varint()
	offset := b.base + p.varint()
	rest := length - p.read
	if p.err != nil || rest < 0 {
		return record{}, b.damaged(p.err)
	}
	if offset < b.from {
		return record{Message: kafka.Message{Offset: offset}, passed: true}, b.skip(rest)
	}
	rec := record{Message: kafka.Message{Offset: offset}}
	b.stamp(&rec, at)
	if rest > int64(b.limit) {
		return rec, b.cutRecord(&rec, rest)
	}
	raw, err := b.take(int(rest))
	if err != nil {
		return rec, err
	}
	c := cursor{b: raw}
	rec.Key = c.bytes(c.varint())
	rec.Value = c.bytes(c.varint())
	headers := c.varint()
	if headers > maxHeaders {
		rec.cut, rec.size, rec.Value = true, int64(len(rec.Value)), rec.Value[:min(len(rec.Value), CutBytes)]
		return rec, nil
	}
	for range headers {
		if c.bad {
			break
		}
		rec.Headers = append(rec.Headers, kafka.Header{Key: string(c.bytes(c.varint())), Value: c.bytes(c.varint())})
	}
	if c.bad {
		return rec, b.damaged(nil)
	}
	return rec, nil
}

// cutRecord reads a record of format 2 that is over the limit, of rest bytes after its offset. It keeps
// the key, if that is no id's size, the beginning of the value, and no headers.
func (b *batch) cutRecord(rec *record, rest int64) error {
	rec.cut = true
	p := &prologue{r: b.r}
	n := p.varint()
	if p.err != nil || n > rest {
		return b.damaged(p.err)
	}
	if n > CutBytes {
		if err := b.skip(n); err != nil {
			return err
		}
	} else if n >= 0 {
		key, err := b.take(int(n))
		if err != nil {
			return err
		}
		rec.Key = key
	}
	rest -= p.read + max(n, 0)
	p.read = 0
	n = p.varint()
	if rest -= p.read; p.err != nil || n > rest {
		return b.damaged(p.err)
	}
	if err := b.cutValue(rec, n); err != nil {
		return err
	}
	return b.skip(rest - max(n, 0))
}

// cutValue reads a value of n bytes, keeps its beginning, and hashes it.
func (b *batch) cutValue(rec *record, n int64) error {
	if n < 0 {
		return nil
	}
	kept, err := b.take(int(min(n, CutBytes)))
	if err != nil {
		return err
	}
	sum := sha256.New()
	sum.Write(kept)
	if _, err := io.CopyN(sum, b.r, n-int64(len(kept))); err != nil {
		return b.damaged(err)
	}
	rec.Value, rec.size, rec.sha256 = kept, n, hex.EncodeToString(sum.Sum(nil))
	return nil
}

// take returns the next n bytes, which are at most the limit and may be kept.
func (b *batch) take(n int) ([]byte, error) {
	out, err := b.r.take(n)
	if err != nil {
		return nil, b.damaged(err)
	}
	return out, nil
}

func (b *batch) skip(n int64) error {
	if _, err := io.CopyN(io.Discard, b.r, n); err != nil {
		return b.damaged(err)
	}
	return nil
}

// damaged explains an error inside a batch. The end of its bytes comes too early.
func (b *batch) damaged(err error) error {
	switch {
	case b.ctx.Err() != nil:
		return b.ctx.Err()
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: a record's length does not fit", errBadBatch)
	}
	return fmt.Errorf("%w: %w", errBadBatch, err)
}

// prologue reads varints and counts their bytes.
type prologue struct {
	r    source
	read int64
	err  error
}

// ReadByte implements io.ByteReader.
func (p *prologue) ReadByte() (byte, error) {
	c, err := p.r.ReadByte()
	if p.read++; p.err == nil {
		p.err = err
	}
	return c, err
}

func (p *prologue) varint() int64 {
	if p.err != nil {
		return 0
	}
	if w, ok := p.r.(*whole); ok {
		if v, n := binary.Varint(w.rest); n > 0 {
			w.rest = w.rest[n:]
			p.read += int64(n)
			return v
		}
	}
	v, err := binary.ReadVarint(p)
	if p.err == nil {
		p.err = err
	}
	return v
}

// stamp gives a record its timestamp: the producer's, or when the broker has appended it.
func (b *batch) stamp(rec *record, created int64) {
	rec.Time = time.UnixMilli(created)
	if b.appended != nil {
		rec.WriterData = createTime(created)
		rec.Time = time.UnixMilli(*b.appended)
	}
}

// createTime is the producer's timestamp, in the WriterData of a record whose Time is the broker's.
type createTime int64

// openMessage reads a message of format 0 or 1. If it is compressed, its value is a set of such
// messages. In format 1 their offsets count from the first, and the outer one is that of the last.
func (b *batch) openMessage(d *decompressors, data []byte) error {
	c := cursor{b: data}
	b.base = c.int64()
	c.take(4) // length
	sum := uint32(c.int32())
	if found := crc32.ChecksumIEEE(c.b); found != sum {
		return fmt.Errorf("%w: CRC-32 %08x, want %08x", errBadBatch, found, sum)
	}
	magic, attributes := c.int8(), c.int8()
	if magic == 1 {
		if at := c.int64(); attributes&appendedFlag != 0 {
			b.appended = &at
		}
	}
	c.bytes(int64(c.int32())) // key
	value := c.bytes(int64(c.int32()))
	if c.bad {
		return fmt.Errorf("%w: a message of %d bytes", errBadBatch, len(data))
	}
	b.last = b.base
	b.read = (*batch).readMessage
	codec := compress.Compression(attributes & codecMask)
	if codec == compress.None {
		return b.decompress(d, codec, data)
	}
	if magic == 1 {
		last, err := d.lastOffset(codec, value)
		if err != nil {
			return err
		}
		b.shift = b.base - last
	}
	return b.decompress(d, codec, value)
}

// lastOffset returns the offset that the last of a compressed set of messages has.
func (d *decompressors) lastOffset(codec compress.Compression, value []byte) (last int64, err error) {
	r, err := d.open(codec, value)
	if err != nil {
		return 0, err
	}
	defer r.Close() //nolint:errcheck // only read
	br := bufio.NewReaderSize(r, 32<<10)
	var head [12]byte
	for {
		if _, err := io.ReadFull(br, head[:]); errors.Is(err, io.EOF) {
			return last, nil
		} else if err != nil {
			return 0, fmt.Errorf("%w: %w", errBadBatch, err)
		}
		last = int64(binary.BigEndian.Uint64(head[:]))
		n := int64(binary.BigEndian.Uint32(head[8:]))
		if _, err := io.CopyN(io.Discard, br, n); err != nil {
			return 0, fmt.Errorf("%w: %w", errBadBatch, err)
		}
	}
}

// readMessage reads a message of format 0 or 1 that is not compressed.
func (b *batch) readMessage() (record, error) {
	var head [12]byte
	if _, err := io.ReadFull(b.r, head[:]); errors.Is(err, io.EOF) {
		return record{}, io.EOF
	} else if err != nil {
		return record{}, b.damaged(err)
	}
	offset := int64(binary.BigEndian.Uint64(head[:])) + b.shift
	n := int64(binary.BigEndian.Uint32(head[8:]))
	if offset < b.from {
		return record{Message: kafka.Message{Offset: offset}, passed: true}, b.skip(n)
	}
	rec := record{Message: kafka.Message{Offset: offset}}
	if n > int64(b.limit) {
		rec.cut = true
		return rec, b.cutValue(&rec, n) // the message with its header, which is small beside it
	}
	raw, err := b.take(int(n))
	if err != nil {
		return rec, err
	}
	c := cursor{b: raw}
	c.int32() // checked with the outer message
	magic := c.int8()
	c.int8()
	at := int64(0)
	if magic == 1 {
		at = c.int64()
	}
	b.stamp(&rec, at)
	rec.Key = c.bytes(int64(c.int32()))
	rec.Value = c.bytes(int64(c.int32()))
	if c.bad {
		return rec, b.damaged(nil)
	}
	return rec, nil
}
