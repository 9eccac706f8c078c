package shard

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"giantstream/internal/vector"
	"giantstream/sink/memstore"
	"giantstream/sink/parquetio"
	"giantstream/stream/mutation"
)

// BenchmarkApply measures how fast a shard on local disk takes new edges, its own and mirrored
// ones, in batches of 2,000.
func BenchmarkApply(b *testing.B) {
	s, err := Open(context.Background(), Options{
		Shards: 1, Dir: b.TempDir(), Store: &memstore.Store{}, Window: wide,
		Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics,
			Mirror: mirrorTopic}, Mirror: discard{},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	var batch mutation.Batch
	offset := int64(0)
	for b.Loop() {
		offset++
		m := mutation.Mutation{Op: mutation.PutEdge,
			Version: mutation.Version{EventTime: offset, Rank: 1, Offset: offset},
			ID:      fmt.Sprintf("node-%06d", offset*7919%50_000), Other: fmt.Sprintf("node-%06d", offset*104_729%50_000)}
		in := mutation.Edges
		if offset%2 == 0 {
			m.Op, in = mutation.MirrorPut, mutation.Mirror
		}
		if batch.State(in, offset, m); len(batch.Mutations) == 2000 {
			batch.Next = map[string]int64{edgesTopic: offset, mirrorTopic: offset}
			if err := s.Apply(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			batch = mutation.Batch{}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mutations/s")
}

// BenchmarkCommit measures what new nodes with texts of 560 bytes cost from mutations to committed
// rows, in windows of 5,000 nodes: processor seconds per million nodes, the engine's background
// work included.
func BenchmarkCommit(b *testing.B) {
	const nodes, window = 120_000, 5000
	text := strings.Repeat("some words of a text ", 30)[:560]
	cpu := 0.0
	for b.Loop() {
		dir := b.TempDir()
		began := cpuSeconds(b)
		s, err := Open(context.Background(), Options{
			Shards: 1, Dir: dir, Store: forgetful{&memstore.Store{}}, Window: wide, Compression: parquetio.None,
			Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic},
		})
		if err != nil {
			b.Fatal(err)
		}
		for at := 0; at < nodes; at += window {
			var batch mutation.Batch
			for i := at; i < at+window; i++ {
				batch.State(mutation.Nodes, int64(i), mutation.Mutation{Op: mutation.PutNode,
					ID: fmt.Sprintf("node-%08d", i*7919%nodes), Text: text,
					Version: mutation.Version{EventTime: int64(i), Offset: int64(i)}})
			}
			batch.Next = map[string]int64{nodesTopic: int64(at + window)}
			if err := s.Apply(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			if _, err := s.Commit(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		cpu += cpuSeconds(b) - began
	}
	b.ReportMetric(cpu/float64(b.N)/nodes*1e6, "cpu-s/M-nodes")
}

// BenchmarkOrders measures what orders cost from mutations to committed rows and a checkpoint-ready state, in windows
// of 5,000 orders: processor seconds per million order lines, bytes of state and of rows a line. An order has between 1
// and 60 lines, 20 on average, of 100,000 items drawn by a power law; one of twenty is stated again with a line less.
func BenchmarkOrders(b *testing.B) {
	const lines, window = 10_000_000, 5000
	cpu, state, written := 0.0, int64(0), int64(0)
	for b.Loop() {
		rng := rand.New(rand.NewPCG(1, 1))
		items := rand.NewZipf(rng, 1.1, 20, 100_000)
		dir, store := b.TempDir(), forgetful{&memstore.Store{}}
		began := cpuSeconds(b)
		s, err := Open(context.Background(), Options{
			Shards: 1, Dir: dir, Store: store, Window: wide, Compression: parquetio.Zstd,
			Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics},
		})
		if err != nil {
			b.Fatal(err)
		}
		offset := int64(0)
		for stated := 0; stated < lines; {
			var batch mutation.Batch
			for range window {
				order := randomLines(rng, items)
				m := mutation.Mutation{Op: mutation.SetOrder, ID: fmt.Sprintf("order-%08d", offset), Order: order,
					Version: mutation.Version{EventTime: offset, Rank: 3, Offset: offset}}
				if rng.IntN(20) == 0 {
					m.ID, order.Lines = fmt.Sprintf("order-%08d", rng.Int64N(offset+1)), order.Lines[1:]
				}
				stated += len(order.Lines)
				batch.State(mutation.Further+1, offset, m)
				offset++
			}
			batch.Next = map[string]int64{ordersTopic: offset}
			if err := s.Apply(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			m, err := s.Commit(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			for _, o := range m.Objects {
				written += o.Bytes
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		cpu += cpuSeconds(b) - began
		state += folderBytes(b, dir)
	}
	n := float64(b.N) * lines
	b.ReportMetric(cpu/n*1e6, "cpu-s/M-lines")
	b.ReportMetric(float64(state)/n, "state-B/line")
	b.ReportMetric(float64(written)/n, "row-B/line")
}

// BenchmarkVectors measures what vectors of 512 numbers cost from mutations to committed rows and a checkpoint-ready
// state, in windows of 5,000 nodes: processor seconds per 100,000 records, bytes of state and of rows a record.
func BenchmarkVectors(b *testing.B) {
	for _, precision := range []mutation.Precision{mutation.Float16, mutation.Float32} {
		b.Run(precision.String(), func(b *testing.B) { benchmarkVectors(b, precision) })
	}
}

func benchmarkVectors(b *testing.B, precision mutation.Precision) {
	const records, window, length = 100_000, 5000, 512
	cpu, state, written := 0.0, int64(0), int64(0)
	for b.Loop() {
		rng := rand.New(rand.NewPCG(1, 1))
		dir, store := b.TempDir(), forgetful{&memstore.Store{}}
		s, err := Open(context.Background(), Options{
			Shards: 1, Dir: dir, Store: store, Window: wide, Compression: parquetio.Zstd,
			Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics},
		})
		if err != nil {
			b.Fatal(err)
		}
		for offset := int64(0); offset < records; {
			var batch mutation.Batch
			for range window {
				data := make([]byte, 0, length*int(precision))
				for range length {
					x := float32(rng.NormFloat64())
					if precision == mutation.Float16 {
						data = binary.LittleEndian.AppendUint16(data, vector.Half(x))
					} else {
						data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
					}
				}
				batch.State(mutation.Further, offset, mutation.Mutation{Op: mutation.SetAttributes, HasVectors: true,
					ID: fmt.Sprintf("node-%08d", offset), Version: mutation.Version{EventTime: offset, Rank: 2, Offset: offset},
					Vectors: []mutation.Vector{{Name: "image", Precision: precision, Data: string(data)}}})
				offset++
			}
			batch.Next = map[string]int64{pricesTopic: offset}
			began := cpuSeconds(b)
			if err := s.Apply(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			m, err := s.Commit(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			cpu += cpuSeconds(b) - began
			for _, o := range m.Objects {
				written += o.Bytes
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		state += folderBytes(b, dir)
	}
	n := float64(b.N) * records
	b.ReportMetric(cpu/n*100_000, "cpu-s/100k")
	b.ReportMetric(float64(state)/n, "state-B/record")
	b.ReportMetric(float64(written)/n, "row-B/record")
}

func randomLines(rng *rand.Rand, items *rand.Zipf) *mutation.Order {
	o := &mutation.Order{Time: int64(rng.IntN(1 << 40)), Kind: "order"}
	for range 1 + min(rng.IntN(40), rng.IntN(60)+rng.IntN(20)) {
		o.Lines = append(o.Lines, mutation.Line{Item: fmt.Sprintf("item-%06d", items.Uint64()),
			Quantity: float32(1 + rng.IntN(12))})
	}
	o.Lines = mutation.SortLines(o.Lines)
	return o
}

func folderBytes(b *testing.B, dir string) (n int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// cpuSeconds is the processor time of this process so far.
func cpuSeconds(b *testing.B) float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// forgetful drops the rows, which would fill the memory.
type forgetful struct{ *memstore.Store }

func (s forgetful) Put(_ context.Context, _ string, r io.Reader, _ int64) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

type discard struct{}

func (discard) Publish(context.Context, []mutation.Mutation) error { return nil }
func (discard) Flush(context.Context) error                        { return nil }
