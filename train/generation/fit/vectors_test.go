package fit

import (
	"os"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

// recall10 is the share of the ten nearest neighbours of embeddings full that the embeddings narrow find,
// over nodes spread evenly. A node as near as the tenth counts, since equal texts are in no order.
func recall10(full []float32, dim int, narrow []float32, narrowDim, queries int) float64 {
	n := len(full) / dim
	var nodes []int32
	for i := 0; i < n; i += max(1, n/queries) {
		if numeric.Dot(full[i*dim:(i+1)*dim], full[i*dim:(i+1)*dim]) > 0 {
			nodes = append(nodes, int32(i))
		}
	}
	const k = 10
	truth, found := eval.Nearest(full, dim, nodes, k), eval.Nearest(narrow, narrowDim, nodes, k)
	hits, all := 0, 0
	for i, q := range nodes {
		tenth := truth[i][len(truth[i])-1].Cosine
		for _, f := range found[i] {
			cosine := numeric.Dot(full[int(q)*dim:int(q+1)*dim], full[int(f.Node)*dim:int(f.Node+1)*dim])
			if float64(cosine) >= tenth-1e-6 {
				hits++
			}
		}
		all += len(truth[i])
	}
	return float64(hits) / float64(all)
}

// narrowed returns embeddings in a format, and their dimension.
func narrowed(vectors []float32, dim int, f embedding.Format) ([]float32, int) {
	var out []float32
	for i := 0; i < len(vectors); i += dim {
		out = append(out, f.Narrow(embedding.Record{Vector: vectors[i : i+dim]}).Vector...)
	}
	return out, len(out) / (len(vectors) / dim)
}

// On a graph of topics: smaller numbers find the same neighbours, and the first half of the dimensions
// finds more of them than the last half.
func TestSmallerVectorsFindTheSameNeighbours(t *testing.T) {
	race.SkipComputing(t)
	g := graphtest.Topics(1500, 12, 8, 3)
	x := cluster(t, fitTexts(t, g, labelDim, resources()), g, 256, resources())
	for kind, least := range map[string]float64{"linear": 0.985, "bag": 0.99} {
		full := encode(t, trained(t, kind, x, 1, 2).Encoder, g.Texts)
		recall := func(f embedding.Format) float64 {
			v, dim := narrowed(full, x.Dim, f)
			return recall10(full, x.Dim, v, dim, 500)
		}
		half, int8s := recall(embedding.Format{Type: embedding.Float16}), recall(embedding.Format{Type: embedding.Int8})
		first := recall(embedding.Format{Dim: x.Dim / 2})
		var last []float32
		for i := 0; i < len(full); i += x.Dim {
			last = append(last, full[i+x.Dim/2:i+x.Dim]...)
		}
		second := recall10(full, x.Dim, last, x.Dim-x.Dim/2, 500)
		t.Logf("%s: recall@10 of float16 %.4f, int8 %.4f, the first half of the dimensions %.4f, the last %.4f", kind, half,
			int8s, first, second)
		if half < 0.998 || int8s < least || first < second+0.2 {
			t.Errorf("%s: want float16 ≥ 0.998, int8 ≥ %.3f and the first half far ahead of the last", kind, least)
		}
	}
}

// TestRecallOfSmallerVectors prints the table of docs/MEASUREMENTS.md, "Smaller vectors".
func TestRecallOfSmallerVectors(t *testing.T) {
	if os.Getenv("GIANTSTREAM_LONG") == "" {
		t.Skip("takes minutes; set GIANTSTREAM_LONG=1")
	}
	for _, name := range []string{"amazon-products", "citeseer", "slackbuilds", "debian-packages"} {
		g := graphtest.Shared(t, name)
		x := cluster(t, fitTexts(t, g, labelDim, resources()), g, labelDim, resources())
		for _, kind := range []string{"hybrid", "bag", "linear", "lsa"} {
			var e train.Encoder
			if kind == "lsa" {
				var err error
				if e, err = linear.NewLSA(x.Vectorizer, x.Projection, x.Dim); err != nil {
					t.Fatal(err)
				}
			} else {
				e = trained(t, kind, x, 1, 0).Encoder
			}
			full := encode(t, e, g.Texts)
			recall := func(f embedding.Format) float64 {
				v, dim := narrowed(full, x.Dim, f)
				return recall10(full, x.Dim, v, dim, 1000)
			}
			row := []float64{recall(embedding.Format{Type: embedding.Float16}), recall(embedding.Format{Type: embedding.Int8}),
				recall(embedding.Format{Dim: 128}), recall(embedding.Format{Dim: 64}),
				recall(embedding.Format{Type: embedding.Int8, Dim: 128})}
			t.Logf("| %s | %s | %.4f | %.4f | %.4f | %.4f | %.4f |", name, kind, row[0], row[1], row[2], row[3], row[4])
		}
	}
}
