package embedding_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/storetest"
)

// unit returns n records of random vectors of length 1, and some unusual ones.
func unit(n, dim int) []embedding.Record {
	r := rand.New(rand.NewPCG(1, 2))
	out := records(n, dim)
	for i := range out {
		var square float64
		for d := range dim {
			x := r.NormFloat64() / float64(d+1)
			out[i].Vector[d], square = float32(x), square+x*x
		}
		for d := range dim {
			out[i].Vector[d] /= float32(math.Sqrt(square))
		}
	}
	clear(out[0].Vector)                              // a text without a known n-gram
	out[1].Vector[0] = 1e-44                          // a denormal number
	clear(out[2].Vector)                              //
	out[2].Vector[0], out[2].Vector[dim-1] = -1, 1e-9 // one number rules
	return out
}

func TestNarrowVectorsStayNearAndStayAsTheyAre(t *testing.T) {
	const dim = 48
	for _, tt := range []struct {
		format embedding.Format
		far    float64 // the largest error of a number
	}{
		{embedding.Format{}, 0},
		{embedding.Format{Dim: dim}, 0},
		{embedding.Format{Dim: 16}, 1e-7},
		{embedding.Format{Type: embedding.Float16}, 0x1p-12},
		{embedding.Format{Type: embedding.Float16, Dim: 16}, 0x1p-12},
		{embedding.Format{Type: embedding.Int8}, 0.5 / 126.9},
		{embedding.Format{Type: embedding.Int8, Dim: 16}, 0.5 / 126.9},
	} {
		t.Run(fmt.Sprintf("%q", tt.format), func(t *testing.T) {
			all := unit(200, dim)
			for i, r := range all {
				before := r
				before.Vector = append([]float32(nil), r.Vector...)
				n := tt.format.Narrow(r)
				if !reflect.DeepEqual(r, before) {
					t.Fatalf("record %d was changed", i)
				}
				if again := tt.format.Narrow(n); !reflect.DeepEqual(again, n) {
					t.Fatalf("narrowed twice, record %d is %+v, once %+v", i, again, n)
				}
				want := r.Vector
				if tt.format.Dim > 0 {
					want = want[:tt.format.Dim]
				}
				var square float64
				for _, x := range want {
					square += float64(x) * float64(x)
				}
				if len(n.Vector) != len(want) {
					t.Fatalf("record %d has %d dimensions, want %d", i, len(n.Vector), len(want))
				}
				for d, x := range want {
					if len(want) < dim && square > 0 {
						x = float32(float64(x) / math.Sqrt(square))
					}
					if e := math.Abs(float64(n.Vector[d] - x)); e > tt.far {
						t.Fatalf("record %d, dimension %d: %g became %g", i, d, x, n.Vector[d])
					}
				}
				if codes, err := n.Codes(); n.Type == embedding.Int8 {
					var back embedding.Record
					if err != nil || back.SetCodes(codes, n.Scale) != nil || !reflect.DeepEqual(back.Vector, n.Vector) {
						t.Fatalf("record %d: codes %v · %g (%v) give %v, want %v", i, codes, n.Scale, err, back.Vector, n.Vector)
					}
					// Exact whatever the width of the reader's floats.
					for d, c := range codes {
						if float64(c)*float64(n.Scale) != float64(n.Vector[d]) {
							t.Fatalf("record %d: %d · %g is not %g", i, c, n.Scale, n.Vector[d])
						}
					}
				}
			}
			var s memstore.Store
			typ, err := embedding.ParseType(string(tt.format.Type))
			if err != nil {
				t.Fatal(err)
			}
			all[5].Status = embedding.FromNeighbours
			all = append(all, embedding.Record{NodeID: "without", Generation: 1, Seq: 4, Status: embedding.NoText})
			for i := range all {
				all[i] = tt.format.Narrow(all[i])
			}
			if _, err := embedding.WriteParquet(t.Context(), &s, "part", typ, seq(all)); err != nil {
				t.Fatal(err)
			}
			var got []embedding.Record
			for r, err := range embedding.ReadParquet(t.Context(), &s, storetest.Ref(t, &s, "part")) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			if !reflect.DeepEqual(got, all) {
				t.Error("the records came back different from Parquet")
			}
		})
	}
}

func TestWidenedFormatsStayNarrow(t *testing.T) {
	int8At64 := embedding.Format{Type: embedding.Int8, Dim: 64}
	for _, tt := range []struct{ asked, stored, want embedding.Format }{
		{embedding.Format{}, embedding.Format{}, embedding.Format{}},
		{int8At64, embedding.Format{}, int8At64},
		{embedding.Format{}, int8At64, int8At64},
		{embedding.Format{Type: embedding.Float16, Dim: 32}, int8At64, embedding.Format{Type: embedding.Int8, Dim: 32}},
	} {
		if got := tt.asked.LimitTo(tt.stored); got.String() != tt.want.String() {
			t.Errorf("%q of what is stored as %q is %q, want %q", tt.asked, tt.stored, got, tt.want)
		}
	}
	r := int8At64.Narrow(unit(4, 128)[3])
	if wide := (embedding.Format{Type: embedding.Float32, Dim: 128}).Narrow(r); !reflect.DeepEqual(wide, r) {
		t.Errorf("%+v became %+v", r, wide)
	}
}

func TestScalesThatAreRefused(t *testing.T) {
	for _, scale := range []float32{-1, float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		var r embedding.Record
		if r.SetCodes([]int8{1}, scale) == nil {
			t.Errorf("the scale %g was accepted", scale)
		}
	}
}

func TestParquetSizes(t *testing.T) {
	const n, dim = 4000, 256
	sizes := map[embedding.Type]int64{}
	for _, typ := range []embedding.Type{embedding.Float32, embedding.Float16, embedding.Int8} {
		all := unit(n, dim)
		for i := range all {
			all[i] = embedding.Format{Type: typ}.Narrow(all[i])
		}
		var s memstore.Store
		info, err := embedding.WriteParquet(t.Context(), &s, "part", typ, seq(all))
		if err != nil {
			t.Fatal(err)
		}
		sizes[typ] = info.Bytes / n
	}
	t.Logf("bytes per node of %d dimensions: %v", dim, sizes)
	if sizes[embedding.Float16] > 6*sizes[embedding.Float32]/10 || sizes[embedding.Int8] > 3*sizes[embedding.Float32]/10 {
		t.Errorf("bytes per node: %v; want float16 at most 0.6, int8 at most 0.3 of float32", sizes)
	}
}
