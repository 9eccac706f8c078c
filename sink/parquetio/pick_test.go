package parquetio_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"giantstream/internal/race"
	"giantstream/sink/parquetio"
)

// priced is a row with columns that its tags do not name.
type priced struct {
	ID     string    `parquet:"id,id(1)"`
	Kind   string    `parquet:"kind,dict,id(2)"`
	Vector []float32 `parquet:"vector,list,optional,id(3)" parquet-element:",id(4)"`

	further []any
}

var further = []any{float64(0), false, "", []string(nil), time.Time{}}

func furtherName(i int) string { return fmt.Sprintf("More-%d", i) }

func pricedFormat(groupBytes int) parquetio.Format[priced] {
	f := parquetio.Format[priced]{Name: "priced/1", Size: func(r *priced) int { return 20 + 4*len(r.Vector) },
		Generation: func(*priced) int64 { return 0 }, GroupBytes: groupBytes}
	for i, of := range further {
		f.Further = append(f.Further, parquetio.Further[priced]{Name: furtherName(i), ID: 10 + 2*i, Element: 11 + 2*i,
			Of: of, Value: func(r *priced) any { return r.further[i] }})
	}
	return f
}

// pricedColumns finds further columns by their ids.
func pricedColumns() []parquetio.Column[priced] {
	set := func(i int) func(*priced, any) {
		return func(r *priced, v any) {
			if r.further == nil {
				r.further = make([]any, len(further))
			}
			r.further[i] = v
		}
	}
	return []parquetio.Column[priced]{
		parquetio.Scalar("id", parquetio.String(), func(r *priced, v string) { r.ID = v }),
		parquetio.Scalar("kind", parquetio.String(), func(r *priced, v string) { r.Kind = v }),
		parquetio.List("vector", parquetio.Float(), func(r *priced, v []float32) { r.Vector = v }),
		parquetio.Scalar("a", parquetio.Double(), func(r *priced, v float64) { set(0)(r, v) }).WithID(10).Optional(),
		parquetio.Scalar("b", parquetio.Bool(), func(r *priced, v bool) { set(1)(r, v) }).WithID(12).Optional(),
		parquetio.Scalar("c", parquetio.String(), func(r *priced, v string) { set(2)(r, v) }).WithID(14).Optional(),
		parquetio.NullableList("d", parquetio.String(), func(r *priced, v []string) {
			set(3)(r, v)
		}).WithID(16).Optional(),
		parquetio.Scalar("e", parquetio.Int64(), func(r *priced, v int64) {
			set(4)(r, time.UnixMicro(v).UTC())
		}).WithID(18).Optional(),
		parquetio.Scalar("f", parquetio.Int64(), func(*priced, int64) { panic("no column has this id") }).WithID(99).
			Optional(),
	}
}

func anyPriced(rnd *rand.Rand, n int) []priced {
	all := make([]priced, n)
	for i := range all {
		all[i] = priced{ID: fmt.Sprintf("%0*d", 1+rnd.IntN(30), i), Kind: strings.Repeat("k", rnd.IntN(3)),
			further: []any{rnd.NormFloat64(), rnd.IntN(2) == 0, fmt.Sprint(rnd.IntN(9)),
				[]string{"a", "", "b,c"}[:rnd.IntN(4)], time.UnixMicro(rnd.Int64N(1e16)).UTC()}}
		for range rnd.IntN(3) * 20 {
			all[i].Vector = append(all[i].Vector, rnd.Float32())
		}
		nulls := 0
		for j := range all[i].further {
			if rnd.IntN(3) == 0 {
				all[i].further[j] = nil
				nulls++
			}
		}
		if nulls == len(all[i].further) {
			all[i].further = nil // as it is read
		}
	}
	return all
}

func pricedFile(t *testing.T, all []priced, groupBytes int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquetio.NewWriter(&b, pricedFormat(groupBytes))
	rows := slices.Clone(all)
	for i := range rows {
		if rows[i].further == nil {
			rows[i].further = make([]any, len(further))
		}
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFurther: columns that no tag names come back as they were written, null and empty lists apart, with the types and
// the ids of the format.
func TestFurther(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	want := anyPriced(rnd, 3000)
	data := pricedFile(t, want, 20_000)
	at := 0
	for got, err := range parquetio.Read(bytes.NewReader(data), int64(len(data)), "priced/1", pricedColumns()) {
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want[at]) {
			t.Fatalf("row %d is %+v, not %+v", at, got, want[at])
		}
		at++
	}
	if at != len(want) {
		t.Fatalf("%d rows are read, not %d", at, len(want))
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range f.Root().Columns()[3:] {
		if !c.Optional() {
			t.Errorf("the column %s is not optional", c.Name())
		}
		for leaf := c; ; leaf = leaf.Columns()[0] {
			if leaf.Leaf() {
				got = append(got, fmt.Sprintf("%s %d %d %s", c.Name(), c.ID(), leaf.ID(), leaf.Type()))
				break
			}
		}
	}
	types := []string{"More-0 10 10 DOUBLE", "More-1 12 12 BOOLEAN", "More-2 14 14 STRING", "More-3 16 17 STRING",
		"More-4 18 18 TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)"}
	if !slices.Equal(got, types) {
		t.Errorf("the columns are %q, not %q", got, types)
	}
}

// TestReadRows: any rows are those that reading all of the file gives.
func TestReadRows(t *testing.T) {
	race.SkipComputing(t)
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 2))
		all := anyPriced(rnd, rnd.IntN(20_000))
		data := pricedFile(t, all, 1<<(8+rnd.IntN(16)))
		for range 5 {
			one := 1 + rnd.IntN(1<<rnd.IntN(12))
			var wanted []int64
			for i := range all {
				if rnd.IntN(one) == 0 {
					wanted = append(wanted, int64(i))
				}
			}
			var got []priced
			for r, err := range parquetio.ReadRows(bytes.NewReader(data), int64(len(data)), "priced/1", pricedColumns(),
				wanted) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			if len(got) != len(wanted) {
				t.Fatalf("seed %d: %d rows are read, not %d", seed, len(got), len(wanted))
			}
			for i, row := range wanted {
				if !reflect.DeepEqual(got[i], all[row]) {
					t.Fatalf("seed %d: row %d is %+v, not %+v", seed, row, got[i], all[row])
				}
			}
		}
	}
}
