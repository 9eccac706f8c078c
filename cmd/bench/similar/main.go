// Command similar measures the index of similar items on vectors of a file, or on drawn ones:
//
//	go run ./cmd/bench/similar -draw 1000000 -out DIR     draws vectors.f32 and queries.f32, with the truth
//	go run ./cmd/bench/similar -in DIR                    measures
//	go run ./cmd/bench/similar -store URL -out DIR        takes a generation's own embeddings; some become queries
//
// With -filters, questions with filters are drawn, and measured, too. peers.py measures FAISS and USearch on the same
// files, and filters.py engines that filter.
//
// Vectors are rows of dim little-endian float32 numbers. truth.i32 holds the nearest ten of each query, by inner
// products in float32.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/internal/parallel"
	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/train/generation"
	"giantstream/train/nearest"
	"giantstream/train/numeric"
)

const k = 10

func main() {
	draw := flag.Int("draw", 0, "draw so many vectors")
	dim := flag.Int("dim", 256, "dimensions")
	store := flag.String("store", "", "folder of a store whose newest generation's embeddings to take")
	out := flag.String("out", "", "folder to write vectors, queries and truth to")
	in := flag.String("in", "", "folder to measure on")
	queries := flag.Int("queries", 2000, "how many vectors become queries")
	filters := flag.Bool("filters", false, "write, or measure, questions with filters, too")
	flag.Parse()
	stage.Exit("similar", run(*draw, *dim, *store, *out, *in, *queries, *filters))
}

func run(draw, dim int, store, out, in string, queries int, filters bool) error {
	switch {
	case in != "":
		return measure(in, dim, filters)
	case out == "":
		return errors.New("nothing to do: see -help")
	case store != "":
		vectors, err := stored(store, dim)
		if err != nil {
			return err
		}
		return write(out, vectors, dim, queries, filters)
	}
	return write(out, drawn(draw+queries, dim), dim, queries, filters)
}

// drawn is vectors about centres that lie about centres, as the products of a catalog do in its categories.
func drawn(n, dim int) []float32 {
	const families, products = 300, 10_000
	rng := rand.New(rand.NewPCG(1, 1))
	point := func(about []float32, spread float64) []float32 {
		v := make([]float32, dim)
		for j := range v {
			v[j] = float32(rng.NormFloat64() * spread)
			if about != nil {
				v[j] += about[j]
			}
		}
		return v
	}
	family := make([][]float32, families)
	for i := range family {
		family[i] = point(nil, 1)
	}
	kind := make([][]float32, products)
	for i := range kind {
		kind[i] = point(family[rng.IntN(families)], 0.7)
	}
	out := make([]float32, 0, n*dim)
	for range n {
		v := point(kind[rng.IntN(products)], 0.7)
		numeric.Normalize(v)
		out = append(out, v...)
	}
	return out
}

// stored is the embeddings of a store's newest generation.
func stored(dir string, dim int) (all []float32, err error) {
	ctx := context.Background()
	s, err := dirstore.Open(dir)
	if err != nil {
		return nil, err
	}
	doc, err := generation.Current(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(ctx, s, part.Ref()) {
			if err != nil {
				return nil, err
			}
			if len(r.Vector) == dim {
				v := slices.Clone(r.Vector)
				numeric.Normalize(v)
				all = append(all, v...)
			}
		}
	}
	return all, nil
}

// write makes some vectors queries, finds the truth, and writes all.
func write(dir string, all []float32, dim, queries int, filters bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	n := len(all)/dim - queries
	if n < k {
		return fmt.Errorf("%d vectors are too few", len(all)/dim)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	rng.Shuffle(len(all)/dim, func(i, j int) {
		for d := range dim {
			all[i*dim+d], all[j*dim+d] = all[j*dim+d], all[i*dim+d]
		}
	})
	vectors, asked := all[:n*dim], all[n*dim:]
	truth := make([]int32, queries*k)
	parallel.ForEach(queries, 8, 0, func(_, _, lo, hi int) {
		scores := make([]float32, (hi-lo)*n)
		numeric.Gemm(numeric.TransB, hi-lo, n, dim, asked[lo*dim:hi*dim], vectors, scores)
		order := make([]int32, 0, k+1)
		for q := lo; q < hi; q++ {
			row := scores[(q-lo)*n : (q-lo+1)*n]
			order = order[:0]
			for i := range int32(n) {
				if len(order) == k && row[i] <= row[order[k-1]] {
					continue
				}
				at, _ := slices.BinarySearchFunc(order, i, func(a, b int32) int {
					if row[a] >= row[b] {
						return -1
					}
					return 1
				})
				order = slices.Insert(order, at, i)
				order = order[:min(k, len(order))]
			}
			copy(truth[q*k:], order)
		}
	})
	if filters {
		if err := writeFilters(dir, vectors, asked, dim); err != nil {
			return err
		}
	}
	return errors.Join(writeArray(dir, "vectors.f32", vectors), writeArray(dir, "queries.f32", asked),
		writeArray(dir, "truth.i32", truth))
}

// writeArray writes a file of little-endian numbers.
func writeArray(dir, name string, numbers any) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return errors.Join(binary.Write(f, binary.LittleEndian, numbers), f.Close())
}

// result is a line of JSON, like those of peers.py.
type result struct {
	Name    string  `json:"name"`
	Build   float64 `json:"build_s"`
	Memory  float64 `json:"memory_mib"` // resident at rest, above what it was before the first vector
	Recall  float64 `json:"recall_at_10"`
	Rate    float64 `json:"queries_per_s"` // one thread
	P99     float64 `json:"p99_ms"`
	Setting string  `json:"setting"`
}

func measure(dir string, dim int, filters bool) error {
	asked, err := stage.ReadArray[float32](filepath.Join(dir, "queries.f32"))
	if err != nil {
		return err
	}
	truth, err := stage.ReadArray[int32](filepath.Join(dir, "truth.i32"))
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, "vectors.f32"))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	n := int(info.Size()) / (4 * dim)
	before, began := resident(), time.Now()
	x := nearest.New(dim)
	if size := nearest.Sample(n); size > 0 {
		sample, row := make([]float32, size*dim), make([]byte, 4*dim)
		for i := range size {
			if _, err := f.ReadAt(row, int64(i*n/size)*int64(4*dim)); err != nil {
				return err
			}
			if _, err := binary.Decode(row, binary.LittleEndian, sample[i*dim:(i+1)*dim]); err != nil {
				return err
			}
		}
		x.Train(n, sample)
	}
	const batch = 1024
	rows, ids, raw := make([]float32, batch*dim), make([]string, batch), make([]byte, 4*batch*dim)
	for lo := 0; lo < n; lo += batch {
		m := min(batch, n-lo)
		if _, err := f.ReadAt(raw[:4*m*dim], int64(lo)*int64(4*dim)); err != nil {
			return err
		}
		if _, err := binary.Decode(raw[:4*m*dim], binary.LittleEndian, rows[:m*dim]); err != nil {
			return err
		}
		for i := range m {
			ids[i] = strconv.Itoa(lo + i)
		}
		if err := x.Set(ids[:m], rows[:m*dim]); err != nil {
			return err
		}
	}
	x.Calibrate()
	r := result{Name: "giantstream", Build: time.Since(began).Seconds()}
	debug.FreeOSMemory()
	r.Memory = resident() - before
	queries := len(asked) / dim
	vectors, err := stage.ReadArray[float32](f.Name())
	if err != nil {
		return err
	}
	took := make([]float64, queries)
	hits := 0
	for q := range queries {
		query := asked[q*dim : (q+1)*dim]
		start := time.Now()
		found := x.Search(query, k, nil, nil)
		took[q] = time.Since(start).Seconds()
		hits += countNearest(found, truth[q*k:(q+1)*k], query, vectors)
	}
	sum := 0.0
	for _, t := range took {
		sum += t
	}
	slices.Sort(took)
	all, probed := x.Cells()
	r.Recall, r.Rate, r.P99 = float64(hits)/float64(queries*k), float64(queries)/sum, 1e3*took[queries*99/100]
	r.Setting = fmt.Sprintf("%d of %d cells, measured", probed, all)
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil || !filters {
		return err
	}
	return measureFilters(x, dir, vectors, asked, dim)
}

// countNearest counts those found that are as near as the farthest of the truth. Many vectors may be equally near.
func countNearest(found []nearest.Neighbour, truth []int32, query, vectors []float32) (hits int) {
	score := func(i int) float32 { return numeric.Dot(query, vectors[i*len(query):(i+1)*len(query)]) }
	for _, f := range found {
		i, _ := strconv.Atoi(f.ID) // ids are numbers
		if score(i) >= score(int(truth[len(truth)-1]))-1e-6 {
			hits++
		}
	}
	return hits
}

// resident is this process's memory in MiB, as Linux counts it.
func resident() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	var kib float64
	_, _ = fmt.Sscan(rest, &kib)
	return kib / 1024
}
