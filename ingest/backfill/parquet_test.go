package backfill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink"
)

// memory is an object in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func object(b []byte) sink.Object { return memory{bytes.NewReader(b)} }

func parquetOf[T any](t testing.TB, groups [][]T, o ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, o...)
	for _, rows := range groups {
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readParquet returns the rows of a file as JSON, and those over the limit by their rows.
func readParquet(data []byte, limit int, mapped ...string) (rows []string, over map[int64]int64, err error) {
	over = map[int64]int64{}
	p, err := newParquetReader(object(data), limit, mapped, false, func(int64) {})
	if err != nil {
		return nil, nil, err
	}
	for {
		rec, err := p.next()
		if errors.Is(err, io.EOF) {
			return rows, over, p.Close()
		}
		if err != nil {
			return rows, over, errors.Join(err, p.Close())
		}
		if rec.over != nil {
			over[rec.line] = rec.over.size
			continue
		}
		rows = append(rows, string(rec.value))
	}
}

type tableRow struct {
	ID    string   `parquet:"id"`
	Links []string `parquet:"links,list"`
	Meta  struct {
		Title *string `parquet:"title,optional"`
		Size  int64   `parquet:"size"`
	} `parquet:"meta"`
	Other []float64 `parquet:"other,list"`
}

func TestParquetReadsMappedColumns(t *testing.T) {
	title := "red \"pen\""
	a, b := tableRow{ID: "a", Links: []string{"b", "c"}, Other: []float64{1}}, tableRow{ID: "b"}
	a.Meta.Title, b.Meta.Size = &title, 7
	data := parquetOf(t, [][]tableRow{{a, b}, {a}})
	want := []string{
		`{"id":"a","links":["b","c"],"meta":{"title":"red \"pen\"","size":0}}`,
		`{"id":"b","links":[],"meta":{"title":null,"size":7}}`,
		`{"id":"a","links":["b","c"],"meta":{"title":"red \"pen\"","size":0}}`,
	}
	rows, _, err := readParquet(data, 1000, "meta", "id", "absent", "links")
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if _, _, err := readParquet(data, 1000, "sku"); err == nil ||
		!strings.Contains(err.Error(), "it has id, links, meta, other") {
		t.Errorf("without a mapped column: %v", err)
	}
}

type bombRow struct {
	ID    string  `parquet:"id"`
	Zeros []int64 `parquet:"zeros,list,dict,zstd"`
}

// TestParquetBombs: a kilobyte of Parquet can be 20 million values. Unmapped, they are not read;
// mapped, the page is refused, or the row is over the limit.
func TestParquetBombs(t *testing.T) {
	bomb := parquetOf(t, [][]bombRow{{{ID: "a", Zeros: make([]int64, 20_000_000)}, {ID: "b"}}})
	if len(bomb) > 10_000 {
		t.Fatalf("the file has %d bytes", len(bomb))
	}
	long := parquetOf(t, [][]bombRow{{{ID: "a", Zeros: make([]int64, 4_000_000)}, {ID: "b", Zeros: []int64{1}}}})
	for name, test := range map[string]struct {
		data   []byte
		mapped []string
		rows   []string
		over   []int64
		err    string
	}{
		"unmapped":         {bomb, []string{"id"}, []string{`{"id":"a"}`, `{"id":"b"}`}, nil, ""},
		"mapped":           {bomb, []string{"id", "zeros"}, nil, nil, "smaller pages"},
		"a row of a page":  {long, []string{"id", "zeros"}, []string{`{"id":"b","zeros":[1]}`}, []int64{1}, ""},
		"another's column": {long, []string{"id"}, []string{`{"id":"a"}`, `{"id":"b"}`}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var rows []string
			var over map[int64]int64
			var err error
			if mb := allocatedMB(func() { rows, over, err = readParquet(test.data, 1<<20, test.mapped...) }); mb > 200 {
				t.Errorf("%d MiB were allocated", mb)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if !slices.Equal(rows, test.rows) || !slices.Equal(slices.Sorted(maps.Keys(over)), test.over) {
				t.Errorf("rows %q, over the limit %v", rows, over)
			}
		})
	}
}

// allocatedMB runs do and returns the MiB that it allocates, whether or not they are freed.
func allocatedMB(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20
}

// TestParquetRepeatedText: a dictionary holds a text once, and a row refers to it any number of times.
func TestParquetRepeatedText(t *testing.T) {
	type row struct {
		Text []string `parquet:"text,list,dict,zstd"`
	}
	texts := slices.Repeat([]string{strings.Repeat("x", 100_000)}, 20_000) // 2 GB as JSON
	data := parquetOf(t, [][]row{{{texts}, {[]string{"y"}}}})
	var rows []string
	var over map[int64]int64
	var err error
	if mb := allocatedMB(func() { rows, over, err = readParquet(data, 1<<20, "text") }); mb > 100 {
		t.Errorf("%d MiB were allocated", mb)
	}
	if err != nil || len(rows) != 1 || over[1] < 2_000_000_000 {
		t.Errorf("%v: rows %.100q, over the limit %v", err, rows, over)
	}
}

// TestParquetFootersThatLie: the library allocates what a footer claims.
func TestParquetFootersThatLie(t *testing.T) {
	footer := []byte{0x15, 2, 0x19, 0xfc} // version 1, then a list of structures …
	footer = binary.AppendUvarint(footer, 1<<31-1)
	file := func(footer []byte) []byte {
		b := append([]byte("PAR1"), footer...)
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
	}
	many := []byte{0x15, 2, 0x19, 0xfc}
	many = append(binary.AppendUvarint(many, 4<<20), make([]byte, 4<<20+1)...)
	deep := append(bytes.Repeat([]byte{0x1c}, 1<<20), make([]byte, 1<<20)...)
	size := file(nil)
	binary.LittleEndian.PutUint32(size[4:], 1<<31)
	for name, data := range map[string][]byte{"a long list": file(footer), "many structures": file(many),
		"nesting": file(deep), "its size": size} {
		var err error
		if mb := allocatedMB(func() { _, _, err = readParquet(data, 1000, "id") }); mb > 100 {
			t.Errorf("%s: %d MiB were allocated", name, mb)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParquet(f *testing.F) {
	f.Add(parquetOf(f, [][]tableRow{{{ID: "a", Links: []string{"b"}}, {ID: "b"}}}))
	f.Add(parquetOf(f, [][]bombRow{{{ID: "a", Zeros: make([]int64, 100)}}}))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _, _ = readParquet(data, 1000, "id", "links", "zeros") // no panic
	})
}
