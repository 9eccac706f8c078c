package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// benchBatches is an answer of batches of 200 records, each of a key and 400 bytes of words.
func benchBatches(codec compress.Compression) (wire []byte, records int) {
	rng := rand.New(rand.NewPCG(1, 1))
	const batches, each = 20, 200
	for base := int64(0); base < batches*each; base += each {
		var raw []byte
		for i := range int64(each) {
			var value []byte
			for len(value) < 400 {
				value = fmt.Appendf(value, "word%d ", rng.IntN(5000))
			}
			raw = append(raw, encodeRecord(i, fmt.Append(nil, "n", base+i), value)...)
		}
		if codec != compress.None {
			raw = compressed(codec, raw)
		}
		b := testBatch{base: base, last: base + each - 1, count: each, records: raw}.encode()
		binary.BigEndian.PutUint16(b[21:], uint16(codec))
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
		wire = append(wire, b...)
	}
	return wire, batches * each
}

// BenchmarkBatches decodes what a broker answered, with its checksums, by our decoder and by those of two
// clients.
func BenchmarkBatches(b *testing.B) {
	for _, codec := range []struct {
		name string
		of   compress.Compression
	}{{"none", compress.None}, {"zstd", compress.Zstd}} {
		wire, records := benchBatches(codec.of)
		for _, decoder := range []struct {
			name string
			read func([]byte) (int, error)
		}{{"ours", readOurs}, {"kafka-go", readKafkaGo}, {"franz-go", readFranzGo}} {
			b.Run(codec.name+"/"+decoder.name, func(b *testing.B) {
				b.SetBytes(int64(len(wire)))
				b.ReportAllocs()
				for b.Loop() {
					if n, err := decoder.read(wire); err != nil || n != records {
						b.Fatalf("%d records, %v; want %d", n, err, records)
					}
				}
				b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

func readOurs(wire []byte) (n int, err error) {
	a := answerOf(0, 1<<40, wire)
	for len(a.rest) > 0 || a.more() {
		f, err := a.read(context.Background())
		if err != nil {
			return n, err
		}
		n += len(f.Records)
	}
	return n, nil
}

func readKafkaGo(wire []byte) (n int, err error) {
	var set protocol.RecordSet
	sized := append(binary.BigEndian.AppendUint32(nil, uint32(len(wire))), wire...)
	if _, err := set.ReadFrom(bytes.NewReader(sized)); err != nil {
		return 0, err
	}
	for {
		r, err := set.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		for _, field := range []protocol.Bytes{r.Key, r.Value} { // which its reader copies as well
			if _, err := protocol.ReadAll(field); err != nil {
				return n, err
			}
		}
		n++
	}
}

func readFranzGo(wire []byte) (n int, err error) {
	part := kmsg.NewFetchResponseTopicPartition()
	part.RecordBatches, part.HighWatermark = wire, 1<<40
	fetched, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: "t"}, &part,
		kgo.DefaultDecompressor(), nil)
	return len(fetched.Records), fetched.Err
}
