package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
)

// testBatch describes a batch of format 2 from base to last with records at some offsets.
type testBatch struct {
	base, last int64
	offsets    []int64
	control    bool
	producer   int64 // of a transaction; 0: none
	appended   int64 // milliseconds, of a topic with LogAppendTime; 0: another one
	codec      compress.Compression
	count      int32 // as the header claims; 0: as it is
	records    []byte
}

func (t testBatch) encode() []byte {
	records := t.records
	for _, o := range t.offsets {
		records = append(records, encodeRecord(o-t.base, []byte("k"), fmt.Append(nil, "v", o))...)
	}
	if t.codec != compress.None {
		records = compressed(t.codec, records)
	}
	count := t.count
	if count == 0 {
		count = int32(len(t.offsets))
	}
	attributes := int16(t.codec)
	if t.control {
		attributes |= controlFlag
	}
	if t.producer != 0 {
		attributes |= transactionFlag
	}
	newest := int64(1_600_000_000_000)
	if t.appended != 0 {
		attributes |= appendedFlag
		newest = t.appended
	}
	var body []byte // what the checksum covers
	body = binary.BigEndian.AppendUint16(body, uint16(attributes))
	body = binary.BigEndian.AppendUint32(body, uint32(t.last-t.base))
	body = binary.BigEndian.AppendUint64(body, 1_600_000_000_000)
	body = binary.BigEndian.AppendUint64(body, uint64(newest))
	body = binary.BigEndian.AppendUint64(body, uint64(t.producer))
	body = append(body, make([]byte, 2+4)...)
	body = binary.BigEndian.AppendUint32(body, uint32(count))
	body = append(body, records...)

	b := binary.BigEndian.AppendUint64(nil, uint64(t.base))
	b = binary.BigEndian.AppendUint32(b, uint32(4+1+4+len(body)))
	b = append(b, 0, 0, 0, 0, 2)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

func encodeRecord(offset int64, key, value []byte, headers ...kafka.Header) []byte {
	r := []byte{0}
	r = binary.AppendVarint(r, 7) // milliseconds
	r = binary.AppendVarint(r, offset)
	field := func(b []byte) {
		if b == nil {
			r = binary.AppendVarint(r, -1)
			return
		}
		r = append(binary.AppendVarint(r, int64(len(b))), b...)
	}
	field(key)
	field(value)
	r = binary.AppendVarint(r, int64(len(headers)))
	for _, h := range headers {
		field([]byte(h.Key))
		field(h.Value)
	}
	return append(binary.AppendVarint(nil, int64(len(r))), r...)
}

func compressed(codec compress.Compression, data []byte) []byte {
	var b bytes.Buffer
	w := codec.Codec().NewWriter(&b)
	_, _ = w.Write(data) // to memory
	_ = w.Close()
	return b.Bytes()
}

func answerOf(from, highWater int64, batches ...[]byte) *answer {
	return &answer{client: &Client{recordBytes: 1 << 20}, topic: "t", next: from, highWater: highWater,
		stable: highWater, transactions: newTransactions(nil),
		rest: slices.Concat(batches...)}
}

func offsets(f Fetched) (all []int64) {
	for _, r := range f.Records {
		all = append(all, r.Offset)
	}
	return all
}

func TestReadPassesMarkersAndCompactedRecords(t *testing.T) {
	run := func(base, last int64, offsets ...int64) []byte {
		return testBatch{base: base, last: last, offsets: offsets}.encode()
	}
	marker := testBatch{base: 6, last: 6, offsets: []int64{6}, control: true}.encode()
	cut := run(7, 7, 7)
	for _, c := range []struct {
		name    string
		from    int64
		batches [][]byte
		want    []int64
		next    int64
	}{
		{"a batch that begins before the offset", 5, [][]byte{run(3, 6, 3, 4, 5, 6)}, []int64{5, 6}, 7},
		{"compaction left gaps", 5, [][]byte{run(9, 9, 9), run(20, 20, 20)}, []int64{9, 20}, 21},
		{"a transaction marker ends the log", 5, [][]byte{run(5, 5, 5), marker}, []int64{5}, 7},
		{"a marker alone", 6, [][]byte{marker}, nil, 7},
		{"compaction emptied the batch", 5, [][]byte{run(3, 8)}, nil, 9},
		{"compaction removed the batch's last records", 5, [][]byte{run(3, 6, 3, 4)}, nil, 7},
		{"the answer ends inside a batch", 5, [][]byte{run(5, 6, 5, 6), cut[:len(cut)-1]}, []int64{5, 6}, 7},
		{"nothing yet", 5, nil, nil, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := answerOf(c.from, 100, c.batches...).read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := offsets(f); !slices.Equal(got, c.want) || f.Next != c.next {
				t.Fatalf("got %v, next %d; want %v, %d", got, f.Next, c.want, c.next)
			}
		})
	}
	if f, err := answerOf(5, 100, cut[:len(cut)-1]).read(t.Context()); !errors.Is(err, errBadBatch) || f.Next != 5 {
		t.Errorf("an answer without a whole batch: next %d, %v", f.Next, err)
	}
}

func TestCompressedBatches(t *testing.T) {
	value := bytes.Repeat([]byte("some text "), 20_000)
	for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4,
		compress.Zstd} {
		var records []byte
		for i := range int64(20) {
			records = append(records, encodeRecord(i, nil, value, kafka.Header{Key: "h", Value: []byte{byte(i)}})...)
		}
		b := testBatch{base: 100, last: 119, count: 20, records: records, codec: codec}
		f, err := answerOf(105, 120, b.encode()).read(t.Context())
		if err != nil || len(f.Records) != 15 || f.Next != 120 {
			t.Errorf("%v: %d records, next %d, %v", codec, len(f.Records), f.Next, err)
			continue
		}
		for i, r := range f.Records {
			if r.Key != nil || !bytes.Equal(r.Value, value) || r.Offset != int64(105+i) ||
				r.Time.UnixMilli() != 1_600_000_000_007 || len(r.Headers) != 1 || r.Headers[0].Value[0] != byte(5+i) {
				t.Errorf("%v: record %d is %d bytes at offset %d, %v, %v", codec, i, len(r.Value), r.Offset, r.Time, r.Headers)
			}
		}
	}
	plain := encodeRecord(0, []byte("k"), []byte{})
	unframed := testBatch{last: 0, count: 1, records: snappy.Encode(nil, plain), codec: compress.None}.encode()
	// The codec is set afterwards: kafka-go's encoder makes frames.
	binary.BigEndian.PutUint16(unframed[21:], uint16(compress.Snappy))
	binary.BigEndian.PutUint32(unframed[17:], crc32.Checksum(unframed[21:], castagnoli))
	f, err := answerOf(0, 1, unframed).read(t.Context())
	if err != nil || len(f.Records) != 1 || f.Records[0].Value == nil || len(f.Records[0].Value) != 0 {
		t.Errorf("Snappy without frames: %+v, %v", f, err)
	}
}

// TestTopicsWithLogAppendTime: the broker writes the time into the head of a batch and leaves the records
// as they were. A fingerprint that was stored before the topic's timestamps were read stays right.
func TestTopicsWithLogAppendTime(t *testing.T) {
	const appended = 1_700_000_000_000
	for _, codec := range []compress.Compression{compress.None, compress.Zstd} {
		read := func(at int64) kafka.Message {
			f, err := answerOf(5, 6, testBatch{base: 5, last: 5, offsets: []int64{5}, codec: codec,
				appended: at}.encode()).read(t.Context())
			if err != nil || len(f.Records) != 1 {
				t.Fatalf("%v: %d records, %v", codec, len(f.Records), err)
			}
			return f.Records[0]
		}
		created, r := read(0), read(appended)
		if got := r.Time.UnixMilli(); got != appended {
			t.Errorf("%v: the timestamp is %d, want %d", codec, got, appended)
		}
		if got, want := Fingerprint(r), Fingerprint(created); got != want {
			t.Errorf("%v: the fingerprint is %s, want %s", codec, got, want)
		}
	}
	large, err := (&answer{client: &Client{recordBytes: 1}, topic: "t", next: 5, highWater: 6, stable: 6,
		transactions: newTransactions(nil), rest: testBatch{base: 5, last: 5, offsets: []int64{5},
			appended: appended}.encode()}).read(t.Context())
	if err != nil || len(large.TooLarge) != 1 || large.TooLarge[0].Time.UnixMilli() != appended {
		t.Errorf("a record over the limit: %+v, %v", large.TooLarge, err)
	}
}

// TestOldMessages reads what kafka-go writes in format 1.
func TestOldMessages(t *testing.T) {
	for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4} {
		var rs []protocol.Record
		for i := range 4 {
			rs = append(rs, protocol.Record{Offset: int64(i), Time: time.UnixMilli(int64(1000 + i)),
				Key: protocol.NewBytes([]byte("k")), Value: protocol.NewBytes(fmt.Append(nil, "v", i))})
		}
		var b bytes.Buffer
		set := protocol.RecordSet{Version: 1, Attributes: protocol.Attributes(codec),
			Records: protocol.NewRecordReader(rs...)}
		if _, err := set.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()[4:] // the size
		if codec != compress.None {
			binary.BigEndian.PutUint64(data, 13) // the broker gives the outer message the last offset
		}
		base := int64(0)
		if codec != compress.None {
			base = 10
		}
		f, err := answerOf(base+1, base+4, data).read(t.Context())
		if err != nil || len(f.Records) != 3 || f.Next != base+4 {
			t.Errorf("%v: %v, next %d, %v", codec, offsets(f), f.Next, err)
			continue
		}
		if r := f.Records[2]; string(r.Value) != "v3" || r.Offset != base+3 || r.Time.UnixMilli() != 1003 {
			t.Errorf("%v: the last record is %+v", codec, r)
		}
		const attributesAt, timeAt = 17, 18
		data[attributesAt] |= appendedFlag
		binary.BigEndian.PutUint64(data[timeAt:], 5000)
		binary.BigEndian.PutUint32(data[12:], crc32.ChecksumIEEE(data[16:]))
		if codec == compress.None {
			continue // each message has its own time, which the broker has replaced
		}
		f, err = answerOf(base+1, base+4, data).read(t.Context())
		if err != nil || len(f.Records) != 3 || f.Records[2].Time.UnixMilli() != 5000 {
			t.Errorf("%v, with LogAppendTime: %+v, %v", codec, f.Records, err)
		}
	}
}

// zeros is a batch of one record of n zeros between two good ones, in Zstandard: 800 MB are 110 KB.
func zeros(t testing.TB, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	write := func(p []byte) {
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	write(encodeRecord(0, []byte("k"), []byte("before")))
	head := []byte{0}
	head = binary.AppendVarint(head, 7)
	head = binary.AppendVarint(head, 1)
	head = append(binary.AppendVarint(head, 4), "zero"...)
	head = binary.AppendVarint(head, n)
	write(append(binary.AppendVarint(nil, int64(len(head))+n+1), head...))
	if _, err := io.CopyN(w, zeroReader{}, n); err != nil {
		t.Fatal(err)
	}
	write([]byte{0}) // no headers
	write(encodeRecord(2, []byte("k"), []byte("after")))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	batch := testBatch{last: 2, count: 3, records: b.Bytes()}.encode()
	binary.BigEndian.PutUint16(batch[21:], uint16(compress.Zstd))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], castagnoli))
	return batch
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// allocated runs do and returns the bytes that it allocates, whether or not they are freed.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestAHugeRecordIsNotHeld: a record that decompresses to 800 MB costs no memory, and neither its
// neighbours.
func TestAHugeRecordIsNotHeld(t *testing.T) {
	const size = 800 << 20
	batch := zeros(t, size)
	if len(batch) > 1<<20 {
		t.Fatalf("the batch has %d bytes", len(batch))
	}
	var f Fetched
	var err error
	if got := allocated(func() { f, err = answerOf(0, 3, batch).read(t.Context()) }); got > 50<<20 {
		t.Errorf("%d MiB were allocated", got>>20)
	}
	if err != nil || len(f.Records) != 2 || string(f.Records[1].Value) != "after" || f.Next != 3 {
		t.Fatalf("%v, next %d, %v", offsets(f), f.Next, err)
	}
	if l := f.TooLarge; len(l) != 1 || l[0].Offset != 1 || l[0].Size != size || len(l[0].Value) != CutBytes ||
		string(l[0].Key) != "zero" || len(l[0].SHA256) != 64 {
		t.Errorf("too large: %d records", len(l))
	}
}

// TestManyLargeRecordsComeInParts: an answer that is small on the wire is read a piece at a time.
func TestManyLargeRecordsComeInParts(t *testing.T) {
	const n, size = 400, 1 << 20
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, size-100)
	for i := range int64(n) {
		if _, err := w.Write(encodeRecord(i, nil, value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	batch := testBatch{last: n - 1, count: n, records: b.Bytes()}.encode()
	binary.BigEndian.PutUint16(batch[21:], uint16(compress.Zstd))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], castagnoli))
	a := answerOf(0, n, batch)
	total, parts := 0, 0
	for f := (Fetched{}); f.Next < n; parts++ {
		if f, err = a.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.Bytes > fetchedBytes+size {
			t.Fatalf("a part has %d bytes", f.Bytes)
		}
		total += len(f.Records)
	}
	if total != n || parts < 10 {
		t.Errorf("%d records in %d parts, want %d", total, parts, n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := answerOf(0, n, batch).read(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context a read gives %v", err)
	}
}

// TestAnswersEndAnywhere: whole batches are read in parts of a bounded number of records, whatever part of
// the next batch follows them.
func TestAnswersEndAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var batches []byte
		end := int64(0)
		for range 1 + r.IntN(4) {
			n := int64(1 + r.IntN(2*fetchedRecords))
			if r.IntN(2) == 0 {
				n = fetchedRecords // so that a part ends with a batch
			}
			b := testBatch{base: end, last: end + n - 1}
			for i := range n {
				b.offsets = append(b.offsets, end+i)
			}
			batches, end = append(batches, b.encode()...), end+n
		}
		cut := testBatch{base: end, last: end, offsets: []int64{end}}.encode()
		a := answerOf(0, end+100, batches, cut[:r.IntN(len(cut))])
		at := int64(0)
		for first := true; first || a.more(); first = false {
			f, err := a.read(t.Context())
			if err != nil {
				t.Fatalf("at offset %d of %d: %v", at, end, err)
			}
			for _, m := range f.Records {
				if m.Offset != at {
					t.Fatalf("record %d, want %d", m.Offset, at)
				}
				at++
			}
			if len(f.Records) > fetchedRecords || f.Next != at {
				t.Fatalf("%d records before offset %d, next is %d", len(f.Records), at, f.Next)
			}
		}
		if at != end {
			t.Fatalf("%d of %d records were read", at, end)
		}
	}
}

// TestDamagedBatches: lengths and counts that lie cost an error and no memory.
func TestDamagedBatches(t *testing.T) {
	good := testBatch{base: 5, last: 9, offsets: []int64{5}}
	flipped := good.encode()
	flipped[len(flipped)-1] ^= 1
	lying := func(codec compress.Compression, records []byte) []byte {
		b := testBatch{base: 5, last: 9, count: math.MaxInt32, records: records}.encode()
		binary.BigEndian.PutUint16(b[21:], uint16(codec))
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
		return b
	}
	record := encodeRecord(0, nil, []byte("v"))
	headers := slices.Clone(record)
	headers[len(headers)-1] = 1 // -1 headers
	for name, b := range map[string][]byte{
		"flipped bit":     flipped,
		"format":          slices.Replace(good.encode(), 16, 17, 9),
		"records missing": lying(compress.None, record),
		"length":          lying(compress.None, binary.AppendVarint(nil, math.MaxInt64)),
		"negative length": lying(compress.None, binary.AppendVarint(nil, -5)),
		"value": lying(compress.None,
			append(binary.AppendVarint(nil, 1<<40), binary.AppendVarint([]byte{0, 0, 0, 1}, 1<<39)...)),
		"not Zstandard":   lying(compress.Zstd, []byte("junk")),
		"Snappy of 4 GiB": lying(compress.Snappy, binary.AppendUvarint(nil, math.MaxUint32)),
		"unknown codec":   lying(5, record),
		"window of 2 GiB": lying(compress.Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0, 0, 0}),
		"truncated lz4":   lying(compress.Lz4, compressed(compress.Lz4, bytes.Repeat(record, 100))[:30]),
		"truncated gzip":  lying(compress.Gzip, compressed(compress.Gzip, bytes.Repeat(record, 100))[:20]),
	} {
		var err error
		if got := allocated(func() {
			for next := int64(5); err == nil && next < 9; { // good records come first
				var f Fetched
				f, err = answerOf(next, 10, b).read(t.Context())
				next = f.Next
			}
		}); got > 50<<20 {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if err != nil && !strings.Contains(err.Error(), "t-0 from offset") {
			t.Errorf("%s: %v does not name the place", name, err)
		}
	}
}

func FuzzBatches(f *testing.F) {
	f.Add(testBatch{base: 5, last: 7, offsets: []int64{5, 7}}.encode(), int64(6))
	for _, codec := range []compress.Compression{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		f.Add(testBatch{base: 5, last: 7, offsets: []int64{5, 7}, codec: codec}.encode(), int64(5))
	}
	var b bytes.Buffer
	set := protocol.RecordSet{Version: 1, Attributes: protocol.Attributes(compress.Gzip),
		Records: protocol.NewRecordReader(protocol.Record{Value: protocol.NewBytes([]byte("v"))})}
	if _, err := set.WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[4:], int64(0))
	f.Fuzz(func(t *testing.T, data []byte, from int64) {
		// Checksums are right, so that what they cover is read.
		if len(data) > batchHeader && data[16] == 2 {
			binary.BigEndian.PutUint32(data[8:], uint32(len(data)-12))
			binary.BigEndian.PutUint32(data[17:], crc32.Checksum(data[21:], castagnoli))
		} else if len(data) > 17 && data[16] < 2 {
			binary.BigEndian.PutUint32(data[8:], uint32(len(data)-12))
			binary.BigEndian.PutUint32(data[12:], crc32.ChecksumIEEE(data[16:]))
		}
		a := answerOf(from, math.MaxInt64, data)
		a.client.recordBytes = 1 << 10
		for range 100 {
			next := a.next
			got, err := a.read(t.Context())
			if err != nil {
				return
			}
			if got.Next < next {
				t.Fatalf("from offset %d to %d", next, got.Next)
			}
			for _, r := range got.Records {
				if r.Offset < from || len(r.Key)+len(r.Value) > 1<<10 {
					t.Fatalf("a record of %d bytes at offset %d, from %d", len(r.Value), r.Offset, from)
				}
			}
			if !a.more() && len(a.rest) == 0 {
				return
			}
		}
	})
}

func FuzzFetchAnswer(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0, 0, 0, 1}, 30), int16(11))
	f.Add([]byte{}, int16(0))
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		a, err := parseFetchAnswer(body, version)
		if err == nil && len(a.batches) > len(body) {
			t.Fatalf("%d bytes of %d", len(a.batches), len(body))
		}
	})
}

// TestAnAnswerIsBounded: what a broker says its answer has is not allocated.
func TestAnAnswerIsBounded(t *testing.T) {
	for size, want := range map[uint32]string{1 << 30: "max.message.bytes", 1 << 31: "max.message.bytes", 40: "EOF"} {
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, size), 1)
		x := newFetchExchange("test", "t", 0, 0, 1<<20, 0, kafka.ReadCommitted)
		x.Required(map[protocol.ApiKey]int16{protocol.Fetch: 11})
		var err error
		if got := allocated(func() {
			_, err = x.RawExchange(struct {
				io.Reader
				io.Writer
			}{bytes.NewReader(head), io.Discard})
		}); got > 1<<20 {
			t.Errorf("a size of %d: %d bytes were allocated", size, got)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a size of %d: %v, want %q", size, err, want)
		}
	}
}
