package rows_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
	"giantstream/sink/storetest"
)

func examples() []rows.Row {
	return []rows.Row{
		{NodeID: "a", Text: "red shoe", Class: "shoes", Labels: []string{"b", "c"},
			FeatureIndices: []int32{1, 7}, FeatureValues: []float32{0.5, 0.25},
			Targets: [][]int32{{0}, {1, 3}, {2, 6, 9}}, TargetCounts: [][]int32{{2}, {1, 1}, {1, 2, 1}},
			Generation: 3, EventTime: 1_700_000_000_000_001},
		{NodeID: "b", Text: "naïve ☃", Labels: []string{"a"}, Targets: [][]int32{{0}, nil, {5}},
			TargetCounts: [][]int32{{1}, nil, {1}}},
		{NodeID: "c", Deleted: true, EventTime: -1},
		{NodeID: "d", Text: "no neighbours", Targets: [][]int32{nil}, TargetCounts: [][]int32{nil}},
	}
}

// random rows of the shape that the products graph has.
func random(n int) []rows.Row {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]rows.Row, n)
	for i := range out {
		r := rows.Row{NodeID: fmt.Sprintf("node-%07d", i), Generation: 1, EventTime: rng.Int64N(1 << 50)}
		r.Text = strings.Repeat("some words of a description ", 1+rng.IntN(12))
		for range rng.IntN(12) {
			r.AddLabel(fmt.Sprintf("node-%07d", rng.IntN(n)), rows.Link{Plain: rng.IntN(3) > 0, Weight: rng.Float32(),
				Time: rng.Int64N(1 << 50), Kind: []string{"", "also_bought"}[rng.IntN(2)]})
		}
		for f := range 40 + rng.IntN(60) {
			r.FeatureIndices = append(r.FeatureIndices, int32(f*100+rng.IntN(100)))
			r.FeatureValues = append(r.FeatureValues, rng.Float32())
		}
		for level := range 3 {
			var t, c []int32
			for range rng.IntN(4 * (level + 1)) {
				t, c = append(t, int32(rng.IntN(1024))), append(c, 1)
			}
			r.Targets, r.TargetCounts = append(r.Targets, t), append(r.TargetCounts, c)
		}
		out[i] = r
	}
	return out
}

func collect(t testing.TB, s sink.Store, key string, columns ...string) []rows.Row {
	t.Helper()
	var out []rows.Row
	ref := storetest.Ref(t, s, key)
	for row, err := range rows.Nodes.Read(context.Background(), s, ref, rows.ReadOptions{Columns: columns}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

func TestWriteThenRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		rows []rows.Row
	}{
		{"none", nil},
		{"examples", examples()},
		{"several row groups", random(25_000)}, // about 22 MB raw
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s memstore.Store
			info := rowstest.Put(t, &s, "x.parquet", tt.rows)
			if info.Rows != int64(len(tt.rows)) {
				t.Errorf("wrote %d rows, want %d", info.Rows, len(tt.rows))
			}
			data, err := sink.ReadAll(context.Background(), &s, "x.parquet")
			if err != nil {
				t.Fatal(err)
			}
			if info.Bytes != int64(len(data)) {
				t.Errorf("info says %d bytes, the object has %d", info.Bytes, len(data))
			}
			if got := collect(t, &s, "x.parquet"); !reflect.DeepEqual(got, tt.rows) {
				for i := range got {
					if !reflect.DeepEqual(got[i], tt.rows[i]) {
						t.Fatalf("row %d: got %+v, want %+v", i, got[i], tt.rows[i])
					}
				}
				t.Fatalf("got %d rows, want %d", len(got), len(tt.rows))
			}
		})
	}
}

// Every compression is what the file says it has, and gives the same rows.
func TestCompressions(t *testing.T) {
	for compression, want := range map[parquetio.Compression]format.CompressionCodec{
		"": format.Zstd, parquetio.Zstd: format.Zstd, parquetio.Snappy: format.Snappy,
		parquetio.None: format.Uncompressed,
	} {
		t.Run(string(compression), func(t *testing.T) {
			var s memstore.Store
			in := random(3000)
			_, err := rows.Nodes.Write(t.Context(), &s, "x", rows.WriteOptions{Compression: compression},
				func(yield func(rows.Row, error) bool) {
					for _, row := range in {
						if !yield(row, nil) {
							return
						}
					}
				})
			if err != nil {
				t.Fatal(err)
			}
			if got := collect(t, &s, "x"); !reflect.DeepEqual(got, in) {
				t.Error("other rows came out than went in")
			}
			data, err := sink.ReadAll(t.Context(), &s, "x")
			if err != nil {
				t.Fatal(err)
			}
			file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range file.Metadata().RowGroups[0].Columns {
				if c.MetaData.Codec != want {
					t.Errorf("column %v has codec %v, want %v", c.MetaData.PathInSchema, c.MetaData.Codec, want)
				}
			}
		})
	}
}

func TestReadSomeColumns(t *testing.T) {
	var s memstore.Store
	rowstest.Put(t, &s, "x", examples())
	got := collect(t, &s, "x", rows.ColDeleted, rows.ColNodeID)
	want := []rows.Row{{NodeID: "a"}, {NodeID: "b"}, {NodeID: "c", Deleted: true}, {NodeID: "d"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	ref := storetest.Ref(t, &s, "x")
	for _, err := range rows.Nodes.Read(context.Background(), &s, ref, rows.ReadOptions{Columns: []string{"colour"}}) {
		if err == nil || !strings.Contains(err.Error(), `"colour"`) {
			t.Errorf("unknown column: got %v", err)
		}
	}
}

func TestWriteErrorStoresNothing(t *testing.T) {
	var s memstore.Store
	boom := errors.New("boom")
	_, err := rows.Nodes.Write(context.Background(), &s, "x", rows.WriteOptions{}, func(yield func(rows.Row, error) bool) {
		_ = yield(rows.Row{NodeID: "a"}, nil) && yield(rows.Row{}, boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("got %v, want the error of the sequence", err)
	}
	if _, err := s.Open(context.Background(), "x"); !errors.Is(err, sink.ErrNotFound) {
		t.Errorf("an object was stored: %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	var s memstore.Store
	ctx := context.Background()
	rowstest.Put(t, &s, "good", random(1000))
	good, err := sink.ReadAll(ctx, &s, "good")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, parquetio.ErrCorrupt},
		{"text", []byte("this is not a parquet file"), parquetio.ErrCorrupt},
		{"cut short", good[:len(good)/2], parquetio.ErrCorrupt},
		{"start missing", good[len(good)/2:], parquetio.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := sink.PutBytes(ctx, &s, "bad", tt.data); err != nil {
				t.Fatal(err)
			}
			err := firstError(rows.Nodes.Read(ctx, &s, storetest.Ref(t, &s, "bad"), rows.ReadOptions{}))
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("other rows than were stored", func(t *testing.T) {
		ref := storetest.Ref(t, &s, "good")
		rowstest.Put(t, &s, "rewritten", random(999))
		ref.Key = "rewritten"
		if err := firstError(rows.Nodes.Read(ctx, &s, ref, rows.ReadOptions{})); !errors.Is(err, sink.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		if err := firstError(rows.Nodes.Read(ctx, &s, sink.Ref{Key: "none"}, rows.ReadOptions{})); !errors.Is(err,
			sink.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
	t.Run("store fails while reading", func(t *testing.T) {
		boom := errors.New("boom")
		ref := storetest.Ref(t, &s, "good")
		reads := 0
		s.Fail = func(op, _ string) error {
			if op == "read" {
				if reads++; reads == 1 {
					return boom
				}
			}
			return nil
		}
		err := firstError(rows.Nodes.Read(ctx, &s, ref, rows.ReadOptions{}))
		if !errors.Is(err, boom) || errors.Is(err, parquetio.ErrCorrupt) {
			t.Errorf("got %v, want the store's error, not ErrCorrupt", err)
		}
	})
}

func firstError[T any](seq func(func(T, error) bool)) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}
