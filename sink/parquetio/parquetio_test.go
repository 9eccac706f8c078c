package parquetio_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink/parquetio"
)

type item struct {
	ID   string
	N    int64
	Tags []string
	Sets [][]int32
}

func columns() []parquetio.Column[item] {
	return []parquetio.Column[item]{
		parquetio.Scalar("id", parquetio.String(), func(r *item, v string) { r.ID = v }),
		parquetio.Scalar("n", parquetio.Int64(), func(r *item, v int64) { r.N = v }),
		parquetio.List("tags", parquetio.String(), func(r *item, v []string) { r.Tags = v }),
		parquetio.Lists("sets", parquetio.Int32(), func(r *item, v [][]int32) { r.Sets = v }),
	}
}

// required is the file as we write it; optional as other tools rewrite it, with every level
// nullable, another column, and the columns in another order.
type required struct {
	ID   string    `parquet:"id"`
	N    int64     `parquet:"n"`
	Tags []string  `parquet:"tags,list"`
	Sets [][]int32 `parquet:"sets,list"`
}

type optional struct {
	Sets  [][]*int32 `parquet:"sets,optional,list" parquet-element:",optional,list"`
	Extra float64    `parquet:"extra"`
	N     *int64     `parquet:"n,optional"`
	Tags  []*string  `parquet:"tags,optional,list" parquet-element:",optional"`
	ID    *string    `parquet:"id,optional"`
}

func file[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(data []byte) ([]item, error) {
	var items []item
	for it, err := range parquetio.Read(bytes.NewReader(data), int64(len(data)), "items/1", columns()) {
		if err != nil {
			return items, err
		}
		items = append(items, it)
	}
	return items, nil
}

func TestReadOwnAndForeignFiles(t *testing.T) {
	want := []item{
		{ID: "a", N: 1, Tags: []string{"x", "y"}, Sets: [][]int32{{1}, nil, {2, 3}}},
		{},
		{ID: "b", Sets: [][]int32{nil}},
		{ID: "c", N: -5, Tags: []string{""}, Sets: [][]int32{{4, 5, 6}}},
	}
	var own []required
	var foreign []optional
	for _, it := range want {
		own = append(own, required(it))
		o := optional{Extra: 7}
		if it.ID != "" {
			o.ID, o.N = &it.ID, &it.N
		}
		for i := range it.Tags {
			o.Tags = append(o.Tags, &it.Tags[i])
		}
		for _, set := range it.Sets {
			var s []*int32
			for i := range set {
				s = append(s, &set[i])
			}
			o.Sets = append(o.Sets, s)
		}
		foreign = append(foreign, o)
	}
	for name, data := range map[string][]byte{
		"own":              file(t, own),
		"foreign":          file(t, foreign),
		"small pages":      file(t, own, parquet.PageBufferSize(1)),
		"small row groups": file(t, own, parquet.MaxRowsPerRowGroup(1)),
	} {
		got, err := read(data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"missing column", file(t, []struct {
			ID string `parquet:"id"`
		}{{"a"}}), "column n is missing"},
		{"another type", file(t, []struct {
			ID string `parquet:"id"`
			N  int32  `parquet:"n"`
		}{{"a", 1}}), "column n is INT32"},
		{"a list too few", file(t, []struct {
			ID   string   `parquet:"id"`
			N    int64    `parquet:"n"`
			Tags []string `parquet:"tags,list"`
			Sets []int32  `parquet:"sets,list"`
		}{{}}), "column sets.list.element.list.element is missing"},
		{"no rows, missing column", file(t, []struct {
			ID string `parquet:"id"`
		}{}), "column n is missing"},
		{"another format", file(t, []required{{}}, parquet.KeyValueMetadata("giantstream.format", "boxes/1")),
			"is this the right file?"},
		{"another version", file(t, []required{{}}, parquet.KeyValueMetadata("giantstream.format", "items/2")),
			"another version of giantstream"},
	} {
		_, err := read(tt.data)
		if !errors.Is(err, parquetio.ErrSchema) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want ErrSchema with %q", tt.name, err, tt.want)
		}
	}
}

// Whatever the bytes, Read ends with rows or an error.
func FuzzRead(f *testing.F) {
	good := file(f, []required{
		{ID: "a", N: 1, Tags: []string{"x", "y"}, Sets: [][]int32{{1}, nil, {2, 3}}}, {}, {ID: "b", Sets: [][]int32{nil}},
	})
	f.Add(good)
	f.Add(file(f, []required{{ID: "a"}}, parquet.Compression(&parquet.Zstd)))
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Add([]byte("PAR1\xff\xff\xff\xffPAR1"))
	for i := 0; i < len(good); i += 7 { // one damaged byte each
		bad := bytes.Clone(good)
		bad[i] ^= 0x41
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		rows := 0
		for _, err := range parquetio.Read(bytes.NewReader(data), int64(len(data)), "items/1", columns()) {
			if err != nil && !errors.Is(err, parquetio.ErrCorrupt) && !errors.Is(err, parquetio.ErrSchema) {
				t.Fatalf("got %v, want ErrCorrupt or ErrSchema", err)
			}
			if rows++; rows > 1<<20 {
				return
			}
		}
	})
}
