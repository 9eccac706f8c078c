// Command vectors measures what vectors of items add to embeddings, on a graph whose texts lack a part that the vectors
// are made of:
//
//	go run ./cmd/bench/vectors -data ../shared/data/amazon-products
//
// The texts keep their first words. The vectors "rest" are made of the others, by n-grams of characters and a
// projection of their own, those of "noise" are random. A tenth of the edges are hidden, and so are all edges of a
// twentieth of the nodes, which are new. Both are ranked by the embeddings among 100 nodes drawn by degree. One
// generation is built without vectors, one with each, and one with those of the rest for a share of the items.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/generate"
	"giantstream/cmd/bench/internal/stage"
	"giantstream/config"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/internal/graphdir"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
	"giantstream/train/numeric/blas"
)

func main() {
	blas32.Use(blas.New())
	data := flag.String("data", "../shared/data/amazon-products", "folder of a graph")
	keep := flag.Int("keep", 4, "words that the texts keep")
	length := flag.Int("length", 512, "numbers of a vector")
	share := flag.Float64("share", 0.5, "share of the items that have a vector, in the last generation")
	seeds := flag.Uint64("seeds", 1, "how many generations are averaged")
	flag.Parse()
	stage.Exit("vectors", run(context.Background(), *data, *keep, *length, *share, *seeds))
}

func run(ctx context.Context, data string, keep, length int, share float64, seeds uint64) error {
	read, err := graphdir.Read(data)
	if err != nil {
		return err
	}
	g := train.Graph(*read)
	known, hidden := eval.Split(&g, 0.1, 1)
	hidden, fresh := hideNodes(&g, known, hidden)
	rest := make([]string, g.Len())
	for i, text := range g.Texts {
		words := strings.Fields(text)
		n := min(keep, len(words))
		known.Texts[i], rest[i] = strings.Join(words[:n], " "), strings.Join(words[n:], " ")
	}
	said, err := ofTexts(rest, length)
	if err != nil {
		return err
	}
	noise := random(g.Len(), length)
	r := numeric.NewRand(3)
	some := make([][]float32, g.Len())
	for i, x := range said {
		if r.Float64() < share {
			some[i] = x
		}
	}
	fmt.Printf("%d nodes, %d known edges, %d hidden, %d of new nodes\n", g.Len(), known.Neighbours.NNZ()/2, len(hidden),
		len(fresh))
	fmt.Println("| vectors | AUC | MRR | new: AUC | MRR | weight |\n|---|---|---|---|---|---|")
	for _, v := range []struct {
		name string
		of   map[string][][]float32
	}{{"none", nil}, {"noise", map[string][][]float32{"noise": noise}}, {"rest", map[string][][]float32{"rest": said}},
		{"both", map[string][][]float32{"noise": noise, "rest": said}},
		{fmt.Sprintf("rest, of %.0f %% of the items", 100*share), map[string][][]float32{"rest": some}}} {
		var figures [4]float64
		var weights []string
		for seed := range seeds {
			doc, vectors, err := embed(ctx, known, v.of, seed+1)
			if err != nil {
				return err
			}
			for k, of := range [][]eval.Edge{hidden, fresh} {
				m, err := eval.Links(vectors, len(vectors)/g.Len(), known, of, eval.LinkOptions{Seed: 1})
				if err != nil {
					return err
				}
				figures[2*k] += m.AUC / float64(seeds)
				figures[2*k+1] += m.MRR / float64(seeds)
			}
			for _, w := range doc.Graph.Vectors {
				weights = append(weights, fmt.Sprintf("%s %.2g", w.Name, w.Weight))
				fmt.Fprintf(os.Stderr, "%+v\n", w)
			}
		}
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.3f | %s |\n", v.name, figures[0], figures[1], figures[2], figures[3],
			strings.Join(weights, ", "))
	}
	return nil
}

// hideNodes hides all edges of some nodes of a graph, too. It returns the edges that are hidden of other nodes, and
// those between a node that is new and one that is not.
func hideNodes(g, known *train.Graph, hidden []eval.Edge) (others, fresh []eval.Edge) {
	r := numeric.NewRand(4)
	isNew := make([]bool, g.Len())
	for i := range isNew {
		isNew[i] = r.Float64() < 0.05
	}
	left := &sparse.Matrix{Cols: g.Len(), Start: []int64{0}}
	for i := range g.Len() {
		var row sparse.Vector
		for k, j := range known.Neighbours.Row(i).Index {
			if !isNew[i] && !isNew[j] {
				row.Index = append(row.Index, j)
				row.Value = append(row.Value, known.Neighbours.Row(i).Weight(k))
			}
		}
		left.Append(row)
		if isNew[i] {
			for _, j := range g.Neighbours.Row(i).Index {
				if !isNew[j] {
					fresh = append(fresh, eval.Edge{Src: int32(i), Dst: j})
				}
			}
		}
	}
	known.Neighbours = left
	for _, e := range hidden {
		if !isNew[e.Src] && !isNew[e.Dst] {
			others = append(others, e)
		}
	}
	return others, fresh
}

// ofTexts returns vectors of texts, nil for a text that has none: n-grams of three to five characters, projected.
func ofTexts(texts []string, length int) ([][]float32, error) {
	const features = 1 << 18
	m := &sparse.Matrix{Cols: features, Start: []int64{0}}
	frequency := make([]int, features)
	all := make([]map[int32]float32, len(texts))
	for i, text := range texts {
		all[i] = map[int32]float32{}
		text = " " + strings.ToLower(text) + " "
		for n := 3; n <= 5; n++ {
			for at := 0; at+n <= len(text); at++ {
				all[i][int32(numeric.HashString(text[at:at+n])%features)]++
			}
		}
		for f := range all[i] {
			frequency[f]++
		}
	}
	for _, counts := range all {
		var v sparse.Vector
		for _, f := range slices.Sorted(maps.Keys(counts)) {
			if frequency[f] > 1 {
				weight := (1 + math.Log(float64(counts[f]))) * math.Log(float64(len(texts))/float64(frequency[f]))
				v.Index, v.Value = append(v.Index, f), append(v.Value, float32(weight))
			}
		}
		numeric.Normalize(v.Value)
		m.Append(v)
	}
	p, err := projection.Fit(m, length, projection.Options{Seed: 1, MaxFeatures: features})
	if err != nil {
		return nil, err
	}
	rows := p.ApplyAll(m, 0)
	out := make([][]float32, len(texts))
	for i := range out {
		row := rows[i*p.Dim() : (i+1)*p.Dim()]
		if numeric.Dot(row, row) > 0 {
			out[i] = row
		}
	}
	return out, nil
}

// random returns vectors of noise.
func random(n, length int) [][]float32 {
	r := numeric.NewRand(2)
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, length)
		for k := range out[i] {
			for range 4 {
				out[i][k] += float32(r.Float64() - 0.5)
			}
		}
	}
	return out
}

// source is a cut of a graph in one shard.
type source struct {
	*train.Graph
	vectors map[string][][]float32
}

// Cut implements generation.Source.
func (source) Cut() map[int]int64 { return map[int]int64{0: 1} }

// Hash implements generation.Source.
func (source) Hash() string { return "" }

// Rows implements generation.Source.
func (s source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for i, id := range s.IDs {
			r := rows.Row{NodeID: id, Text: s.Texts[i], Class: s.Classes[i], EventTime: 1}
			for _, j := range s.Neighbours.Row(i).Index {
				r.Labels = append(r.Labels, s.IDs[j])
			}
			slices.Sort(r.Labels)
			if !yield(generation.Row{Row: r, Seq: 1}, nil) {
				return
			}
		}
	}
}

// Vectors are those of the nodes.
func (s source) Vectors() (all []rows.Vectors) {
	for _, name := range slices.Sorted(maps.Keys(s.vectors)) {
		for i, x := range s.vectors[name] {
			if x == nil {
				continue
			}
			var b []byte
			for _, v := range x {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
			all = append(all, rows.Vectors{NodeID: s.IDs[i], Names: []string{name}, Bits: []int32{32},
				Values: [][]byte{b}, EventTime: 1})
		}
	}
	return all
}

// embed builds a generation, and returns the embeddings of all nodes.
func embed(ctx context.Context, g *train.Graph, vectors map[string][][]float32, seed uint64) (*generation.Doc,
	[]float32, error) {
	cfg := config.Default()
	cfg.Train.Seed = seed
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	built, out, err := generate.Build(ctx, &cfg, log, source{g, vectors}, nil, g.IDs, g.Texts)
	if err != nil {
		return nil, nil, err
	}
	return built.Doc, out, nil
}
