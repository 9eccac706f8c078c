package staged

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/tasks"
	"giantstream/sink/dirstore"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// inOrder is a graph as the source of a build in one process.
type inOrder []rows.Row

func (s inOrder) Cut() map[int]int64 { return map[int]int64{0: 9} }
func (s inOrder) Hash() string       { return "" }

func (s inOrder) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range s {
			if !yield(generation.Row{Row: r, Seq: 9}, nil) {
				return
			}
		}
	}
}

// On a real graph, a staged build and one in one process are as good as each other. The two differ in the order of
// nodes, and so in what chance chooses; seeds show by how much.
func TestQualityOfARealGraph(t *testing.T) {
	if testing.Short() {
		t.Skip("trains several encoders")
	}
	g := graphtest.Shared(t, "citeseer")
	var all []rows.Row
	for i, id := range g.IDs {
		r := rows.Row{NodeID: id, Text: g.Texts[i], Class: g.Classes[i], EventTime: 1}
		for _, j := range g.Neighbours.Row(i).Index {
			r.Labels = append(r.Labels, g.IDs[j])
		}
		slices.Sort(r.Labels)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b rows.Row) int { return strings.Compare(a.NodeID, b.NodeID) })
	var whole, parts figures
	for seed := range uint64(3) {
		s := fit.Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: 256, EmbeddingDim: 128, Weighting: "sum",
			LabelFeatures: "pifa", Encoder: "hybrid", Seed: seed, TreeSeed: seed, Holdout: 0.1, EvalSeed: 1,
			ProbeRates: []float64{0.1}}
		b := &generation.Builder{Store: &memstore.Store{}, Settings: s, Resources: resources()}
		doc, err := b.Build(t.Context(), 1, inOrder(all), generation.UntilReady)
		if err != nil {
			t.Fatal(err)
		}
		whole.add(doc)
		staged := newSetup(&memstore.Store{}, logsOf(all, 2, 1), s)
		parts.add(staged.run(t, staged.begin(t, 8, 0), tasks.Local{Workers: 2}))
	}
	t.Logf("link AUC %.4f in one process, %.4f staged; classes %.4f and %.4f; mean cosine of the tree %.4f and %.4f",
		mean(whole.auc), mean(parts.auc), mean(whole.class), mean(parts.class), mean(whole.cosine), mean(parts.cosine))
	for _, f := range []struct {
		name         string
		whole, parts []float64
		stderr       float64
	}{{"link AUC", whole.auc, parts.auc, math.Hypot(whole.aucErr, parts.aucErr)},
		{"classes", whole.class, parts.class, math.Hypot(whole.classErr, parts.classErr)}} {
		if d := mean(f.whole) - mean(f.parts); d > f.stderr {
			t.Errorf("%s: %.4f less than in one process, the standard error of a difference is %.4f", f.name, d,
				f.stderr)
		}
	}
}

type figures struct {
	auc, class, cosine []float64
	aucErr, classErr   float64
}

func (f *figures) add(doc *generation.Doc) {
	e := doc.Evaluation[len(doc.Evaluation)-1]
	f.auc, f.class = append(f.auc, e.Links.AUC), append(f.class, e.Probes[0].Accuracy)
	f.cosine = append(f.cosine, doc.Tree.MeanCosine)
	f.aucErr, f.classErr = max(f.aucErr, e.Links.AUCStdErr), max(f.classErr, e.Probes[0].StdErr)
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// The memory of a build, one task at a time, does not grow with the graph: a graph of four times as many nodes, in
// four times as many partitions, takes the same.
func TestMemoryIsThatOfAPartition(t *testing.T) {
	if testing.Short() {
		t.Skip("builds 50,000 nodes")
	}
	old := debug.SetMemoryLimit(64 << 20)
	defer debug.SetMemoryLimit(old)
	var most [2]uint64
	for k, nodes := range []int{10_000, 40_000} {
		store, err := dirstore.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		logs := manyTexts{nodes: nodes, bytes: 1_500}
		b := newSetup(store, nil, settings())
		b.worker.Log = func(context.Context, map[int]int64) (Log, error) { return logs, nil }
		b.cut, b.shards = map[int]int64{0: 1}, 1
		b.worker.MemoryLimit = 32 << 20
		plan := b.begin(t, nodes/625, 2000)
		debug.FreeOSMemory()
		if _, err := b.worker.Run(t.Context(), plan, tasks.Local{Workers: 1}, heapWatch{b.worker, &most[k]},
			nil); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d MiB of texts: at most %d MiB from the system after a task", nodes*logs.bytes>>20, most[k]>>20)
	}
	if limit := most[0]*13/10 + 16<<20; most[1] > limit {
		t.Errorf("%d MiB for a graph that is four times as large as one of %d MiB", most[1]>>20, most[0]>>20)
	}
}

// manyTexts is a graph of long texts that are made as they are read.
type manyTexts struct{ nodes, bytes int }

func (m manyTexts) Size(context.Context) (Size, error) {
	return Size{Rows: int64(m.nodes), Bytes: int64(m.nodes * m.bytes), Splits: []Split{{0, 0, 1}}}, nil
}
func (m manyTexts) Fingerprint() Fingerprint { return shardLogs(nil).Fingerprint() }

func (m manyTexts) Rows(context.Context, Split) iter.Seq2[generation.Row, error] {
	id := func(i int) string { return fmt.Sprintf("n%05d", i) }
	return func(yield func(generation.Row, error) bool) {
		for i := range m.nodes {
			var text []byte
			for k := 0; len(text) < m.bytes; k++ {
				text = fmt.Appendf(text, "w%d ", (i/100*31+k*k)%5000)
			}
			r := generation.Row{Row: rows.Row{NodeID: id(i), Text: string(text), EventTime: 1}, Seq: 1}
			for _, j := range []int{i - 1, i + 1} {
				if j >= 0 && j < m.nodes {
					r.Labels = append(r.Labels, id(j))
				}
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestBF16RoundsToNearest(t *testing.T) {
	for _, x := range []float32{0, 1, -1, 0.1, 1.00390625, 1.01171875, 3e38, 1e-38, float32(math.Pi)} {
		var got [1]float32
		bf16(appendBF16(nil, []float32{x}), got[:])
		if d := math.Abs(float64(got[0] - x)); d > math.Abs(float64(x))/256 {
			t.Errorf("%v became %v", x, got[0])
		}
	}
}

// heapWatch notes how much is live after each task.
type heapWatch struct {
	tasks.Work
	most *uint64
}

func (h heapWatch) Do(ctx context.Context, t tasks.Task) error {
	err := h.Work.Do(ctx, t)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	*h.most = max(*h.most, m.Sys-m.HeapReleased)
	return err
}
