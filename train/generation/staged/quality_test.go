package staged

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"giantstream/internal/parallel"
	"giantstream/internal/tasks"
	"giantstream/sink/dirstore"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

var (
	qualityGraph = flag.String("graph", "citeseer", "graph of the comparison of staged builds with one process")
	qualitySeeds = flag.Int("seeds", 3, "how many seeds that comparison has")
	qualityKind  = flag.String("encoder", "hybrid", "encoder of that comparison")
	hashOrder    = flag.Bool("hash-order", false, "nodes have ids whose order is that of their hashes")
	shuffle      = flag.Bool("shuffle", false, "nodes have ids of a random order, another one for each seed")
)

// On a real graph, a staged build and one in one process are as good as each other. The two differ in the order of
// nodes, and so in what chance chooses: each seed also draws other hidden links and other labelled nodes.
func TestQualityOfARealGraph(t *testing.T) {
	if testing.Short() {
		t.Skip("trains several encoders")
	}
	g := graphtest.Shared(t, *qualityGraph)
	var names []string // nil for the graph's own
	switch {
	case *hashOrder:
		names = namesByHash(t, g.Len())
	case *shuffle:
		for i := range g.Len() {
			names = append(names, fmt.Sprintf("%08d", i))
		}
	}
	var whole, parts figures
	inOne, inStages := &phases{}, &phases{}
	for seed := range uint64(*qualitySeeds) {
		if *shuffle {
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		all := rowsOfGraph(g, names)
		s := fit.Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: 256, EmbeddingDim: 128, Weighting: "sum",
			LabelFeatures: "pifa", Encoder: *qualityKind, Seed: seed, TreeSeed: seed, Holdout: 0.1, EvalSeed: seed,
			ProbeRates: []float64{0.1}}
		b := &generation.Builder{Store: &memstore.Store{}, Settings: s, Resources: resources()}
		b.Progress = inOne
		begun := processorTime(t)
		inOne.begin(t, "read")
		doc, err := b.Build(t.Context(), 1, all, generation.UntilReady)
		if err != nil {
			t.Fatal(err)
		}
		inOne.end()
		whole.add(doc, processorTime(t)-begun)
		staged := newSetup(&memstore.Store{}, logsOf(all, 2, 1), s)
		begun = processorTime(t)
		inStages.begin(t, "plan")
		doc, err = staged.worker.Run(t.Context(), staged.begin(t, 8, 0), tasks.Local{Workers: 2}, staged.worker,
			func(s Stage) { inStages.begin(t, s.Name) })
		if err != nil {
			t.Fatal(err)
		}
		inStages.end()
		parts.add(doc, processorTime(t)-begun)
		t.Logf("seed %d: %.4f, %.4f links; %.4f, %.4f classes; %.1f, %.1f processor seconds", seed, whole.auc[seed],
			parts.auc[seed], whole.class[seed], parts.class[seed], whole.seconds[seed], parts.seconds[seed])
	}
	t.Logf("processor seconds in one process:%v", inOne)
	t.Logf("processor seconds staged:%v", inStages)
	for _, f := range []struct {
		name         string
		whole, parts []float64
	}{{"link AUC", whole.auc, parts.auc}, {"classes", whole.class, parts.class},
		{"mean cosine of the tree", whole.cosine, parts.cosine}, {"processor seconds", whole.seconds, parts.seconds}} {
		d := make([]float64, len(f.whole))
		for k := range d {
			d[k] = f.whole[k] - f.parts[k]
		}
		t.Logf("%s: %.4f ± %.4f in one process, %.4f ± %.4f staged; difference %.4f, standard error %.4f", f.name,
			mean(f.whole), deviation(f.whole), mean(f.parts), deviation(f.parts), mean(d),
			deviation(d)/math.Sqrt(float64(len(d))))
	}
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

// rowsOfGraph returns a graph in ascending order of ids, which are names[i] in place of its own unless names is nil.
func rowsOfGraph(g *train.Graph, names []string) (all generationtest.Source) {
	ids := g.IDs
	if names != nil {
		ids = names
	}
	for i, id := range ids {
		r := rows.Row{NodeID: id, Text: g.Texts[i], Class: g.Classes[i], EventTime: 1}
		for _, j := range g.Neighbours.Row(i).Index {
			r.Labels = append(r.Labels, ids[j])
		}
		slices.Sort(r.Labels)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b rows.Row) int { return strings.Compare(a.NodeID, b.NodeID) })
	return all
}

// namesByHash returns n ids that ascend with their hashes, which are spread evenly. Each takes about n attempts, so
// that what they have in common is hashed once (FNV-1a, as numeric.HashString).
func namesByHash(t *testing.T, n int) []string {
	t.Helper()
	const prime = 1099511628211
	share := math.MaxUint64/uint64(n) + 1
	names := make([]string, n)
	find := func(i int) string {
		for k := 0; ; k++ {
			name := fmt.Sprintf("%08d-%x-", i, k)
			state := fnv.New64a()
			state.Write([]byte(name))
			from := state.Sum64()
			for a := uint64('A'); a <= 'z'; a++ {
				next := (from ^ a) * prime
				for b := uint64('A'); b <= 'z'; b++ {
					if numeric.Mix((next^b)*prime)/share == uint64(i) {
						return name + string([]byte{byte(a), byte(b)})
					}
				}
			}
		}
	}
	parallel.Each(n, 64, 2, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			names[i] = find(i)
		}
	})
	if !slices.IsSortedFunc(names, func(a, b string) int { return cmp.Compare(hashOf(a), hashOf(b)) }) {
		t.Fatal("the ids do not ascend with their hashes")
	}
	return names
}

type figures struct {
	auc, class, cosine, seconds []float64
	aucErr, classErr            float64
}

func (f *figures) add(doc *generation.Doc, took time.Duration) {
	e := doc.Evaluation[len(doc.Evaluation)-1]
	f.auc = append(f.auc, e.Links.AUC)
	f.aucErr = max(f.aucErr, e.Links.AUCStdErr)
	f.cosine, f.seconds = append(f.cosine, doc.Tree.MeanCosine), append(f.seconds, took.Seconds())
	if len(e.Probes) > 0 {
		f.class, f.classErr = append(f.class, e.Probes[0].Accuracy), max(f.classErr, e.Probes[0].StdErr)
	}
}

// processorTime is what the process has taken so far: what other processes do is not in it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// phases adds up the processor time of the stages of several builds. It implements train.Progress.
type phases struct {
	t     *testing.T
	names []string
	took  map[string]time.Duration
	now   string
	begun time.Duration
}

func (p *phases) begin(t *testing.T, name string) {
	p.end()
	if p.took == nil {
		p.took = map[string]time.Duration{}
	}
	if _, known := p.took[name]; !known {
		p.names = append(p.names, name)
	}
	p.t, p.now, p.begun = t, name, processorTime(t)
}

func (p *phases) end() {
	if p.now != "" {
		p.took[p.now] += processorTime(p.t) - p.begun
	}
	p.now = ""
}

func (p *phases) Stage(name string, _ int64) { p.begin(p.t, name) }
func (p *phases) Add(int64)                  {}

func (p *phases) String() string {
	var b strings.Builder
	for _, name := range p.names {
		fmt.Fprintf(&b, "\n%8.2f  %s", p.took[name].Seconds(), name)
	}
	return b.String()
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// deviation is the standard deviation of a sample.
func deviation(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += (x - mean(v)) * (x - mean(v))
	}
	return math.Sqrt(sum / max(1, float64(len(v)-1)))
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
