package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// Trial is a graph to build, and how.
type Trial struct {
	// Dir is a folder for the stores of the builds, which are removed.
	Dir string
	// Log returns the graph. What it reads of a store, it reads through counted.
	Log       func(ctx context.Context, counted func(sink.Store) sink.Store) (work.Log, error)
	Shards    int
	Settings  fit.Settings
	Resources fit.Resources
	Machine   string
	// Watch is called when a stage of a build begins.
	Watch func(build, builds int, s stages.Stage)
}

// LeastNodes is how many nodes a trial should have: the projection is fitted to 8,192 texts, and a third of the graph
// has to have them. What a smaller one costs says little of a large one.
const LeastNodes = 4 * fitted

// division is how one build of a trial divides the graph, and what it leaves out.
type division struct {
	third              bool // of the nodes
	partitions, ranges int  // 0: those of the graph
	quarter            bool // of the nodes, for the sample
	unclassed          bool // the nodes have no classes
	spread             bool // even if that saves nothing
	again              bool // a second generation, with all optional stages, of which nothing else counts
}

// divisions differ in all that a cost can depend on: how large the graph is, how many pieces its partitions exchange,
// how many ranges of labels read all texts, how many instances and other nodes the sample has, and whether classes are
// asked for.
var divisions = []division{
	{third: true, partitions: 1},
	{third: true, again: true, partitions: 16, ranges: 16, spread: true},
	{},
	{partitions: 64, ranges: 8, quarter: true, unclassed: true},
	{partitions: 64, ranges: 32, spread: true, quarter: true},
}

// Calibrate builds the graph in several divisions, one task at a time, and returns what each stage cost.
func Calibrate(ctx context.Context, t Trial) (Calibration, error) {
	var builds []*built
	for i, d := range divisions {
		b, err := t.build(ctx, i, d)
		if err != nil {
			return Calibration{}, err
		}
		builds = append(builds, b)
	}
	c := calibration(t, builds)
	return c, c.Validate()
}

// calibration fits the rates of all stages to what the builds of a trial cost.
func calibration(t Trial, builds []*built) Calibration {
	c := Calibration{Format: Format, Machine: t.Machine, When: time.Now().UTC().Truncate(time.Second),
		Graph: builds[len(builds)-1].graph, Encoder: t.Settings.Encoder, Dim: t.Settings.EmbeddingDim,
		ProjectionDim: t.Settings.ProjectionDim, Growth: growth(builds), Stages: map[string]Rates{}}
	for name, s := range Shapes {
		c.Stages[name] = rates(name, s, builds, c)
	}
	for name, s := range Shapes {
		if slices.Contains(s.CPU, perScan) {
			c.Stages[name].CoreSeconds[perScan] = c.Stages[stages.Number].CoreSeconds[perRow] * scanShare
		}
	}
	return c
}

// counts says whether a stage of the build tells what that stage costs.
func (b *built) counts(stage string) bool { return !b.again || isOptional(stage) }

// built is what a build cost.
type built struct {
	division
	plan  stages.Plan
	graph Graph
	// instances fill the sample, 0 if it is the graph.
	instances int
	spent     map[string]*spent
}

func (t Trial) build(ctx context.Context, i int, d division) (*built, error) {
	folder := fmt.Sprint(i)
	if d.again {
		folder = fmt.Sprint(i - 1)
	}
	folder = filepath.Join(t.Dir, folder)
	if i+1 == len(divisions) || !divisions[i+1].again {
		defer os.RemoveAll(folder) //nolint:errcheck // the caller removes the rest
	}
	dir, err := dirstore.Open(folder)
	if err != nil {
		return nil, err
	}
	m := &meter{stages: map[string]*spent{}}
	log, err := t.Log(ctx, m.store)
	if err != nil {
		return nil, err
	}
	size, err := log.Size(ctx)
	if err != nil {
		return nil, err
	}
	seen := &seen{Log: log, division: d, maxDegree: t.Settings.MaxDegree, texts: map[string]int64{},
		classes: map[string]bool{}, links: map[string][]string{}}
	settings := t.Settings
	settings.Relations = nil // a plan has no rates for them
	if d.again {
		settings.MissingText, settings.LabelFeatures = fit.Neighbours, labelFeatures
	}
	store := m.store(dir)
	w := &build.Worker{Means: work.Means{Store: store, Resources: t.Resources,
		Log: func(context.Context, map[int]int64) (work.Log, error) { return seen, nil }}}
	request := build.Request{Settings: settings, Shards: t.Shards, Partitions: d.partitions}
	if d.quarter {
		request.Sample = int(size.Rows / 4)
	}
	plan, err := w.Begin(ctx, request)
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // a process begins with none
	doc, err := w.Run(ctx, plan, tasks.Local{Workers: 1}, m.work(w), func(s stages.Stage) {
		if t.Watch != nil {
			t.Watch(i+1, len(divisions), s)
		}
	}, stages.Finish)
	if err != nil {
		return nil, err
	}
	if doc.TextOnly != "" {
		return nil, errors.New("the graph has too few links to train an encoder: " + doc.TextOnly)
	}
	instances := 0
	if d.quarter {
		instances = seen.instances(plan.Sample)
	}
	g := Graph{Nodes: int64(doc.Graph.Nodes), TextBytes: seen.textBytes(),
		References: int64(doc.Graph.Links + doc.Graph.Dangling), Links: int64(doc.Graph.Links),
		Classes: len(seen.classes)}
	return &built{division: d, plan: plan, instances: instances, spent: m.stages, graph: g}, nil
}

// seen is the part of a log that a build reads, one task at a time. It notes how long the newest text of each node is,
// and the classes. A log has a row for each change of a node, which an input does not know of: the load of a graph from
// files makes about two.
type seen struct {
	work.Log
	division
	maxDegree int
	texts     map[string]int64
	classes   map[string]bool
	links     map[string][]string
}

// instances are as many as fill a sample, with what they link to, in the order of hashes.
func (s *seen) instances(sample int) (n int) {
	taken := map[string]bool{}
	for _, id := range slices.SortedFunc(maps.Keys(s.links), func(a, b string) int {
		return cmp.Or(cmp.Compare(hash(a), hash(b)), cmp.Compare(a, b))
	}) {
		if len(taken) >= sample {
			break
		}
		n++
		taken[id] = true
		for _, to := range s.links[id] {
			if _, known := s.links[to]; known && len(s.links[id]) <= s.maxDegree {
				taken[to] = true
			}
		}
	}
	return n
}

func hash(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id)) //nolint:errcheck // a hash has no errors
	return h.Sum32()
}

func (s *seen) textBytes() (n int64) {
	for _, text := range s.texts {
		n += text
	}
	return n
}

// Size asks for the ranges of the division, and says of the links what decides for or against spread.
func (s *seen) Size(ctx context.Context) (stages.Size, error) {
	size, err := s.Log.Size(ctx)
	size.Ranges, size.Nodes, size.Links = s.ranges, 0, 0
	size.Orders = false // a plan has no rates for them
	if s.spread {
		size.Nodes, size.Links = 1, 1
	}
	return size, err
}

func (s *seen) Rows(ctx context.Context, split stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for r, err := range s.Log.Rows(ctx, split) {
			if err == nil {
				if s.third && hash(r.NodeID)%3 != 0 {
					continue
				}
				s.texts[r.NodeID], s.links[r.NodeID] = int64(len(r.Text)), slices.Clone(r.Labels)
				if r.Deleted {
					delete(s.texts, r.NodeID)
					delete(s.links, r.NodeID)
				}
				switch {
				case s.unclassed:
					r.Class = ""
				case r.Class != "":
					s.classes[r.Class] = true
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// growth measures how n-grams grow, by what count and merge left, and how the sample does.
func growth(builds []*built) (g Growth) {
	var x, y, xx, xy, n float64
	for _, b := range builds {
		if b.again {
			continue
		}
		p := float64(b.plan.Partitions)
		text := math.Log(float64(b.graph.TextBytes) / p)
		bytes := math.Log(max(1, float64(b.spent[stages.Count].written)/p))
		x, y, xx, xy, n = x+text, y+bytes, xx+text*text, xy+text*bytes, n+1
		if p*shareOfNGrams*candidateBytes > float64(b.spent[stages.Merge].written) {
			kept := float64(b.spent[stages.Merge].written) / candidateBytes / float64(b.graph.TextBytes)
			g.Candidates = max(g.Candidates, kept)
		}
	}
	for _, b := range builds {
		if b.instances > 0 {
			g.Reach = reach(b.graph, b.plan.Sample, b.instances)
		}
	}
	g.Exponent = min(1, max(0, (n*xy-x*y)/(n*xx-x*x)))
	return g
}

// rates fits those of a stage.
func rates(name string, s Shape, builds []*built, c Calibration) Rates {
	var cpu, read, written []observation
	var r Rates
	var most time.Duration
	for _, b := range builds {
		got := b.spent[name]
		if got == nil || !b.counts(name) {
			continue
		}
		q := quantities(b.graph, c, b.plan, 1)
		cpu = append(cpu, observation{q, got.cpu.Seconds()})
		read = append(read, observation{q, float64(got.read)})
		written = append(written, observation{q, float64(got.written)})
		if got.cpu < most {
			continue
		}
		most = got.cpu
		r.Parallel = parallelShare(got.cpu, got.wall, runtime.GOMAXPROCS(0))
		r.Shuffled = float64(got.shuffled) / float64(max(1, got.read))
		r.ModelBytes = float64(got.models)
		if name == stages.Dataset {
			r.ModelBytes = max(0, r.ModelBytes-treeBytes*float64(b.graph.Nodes))
		}
	}
	r.CoreSeconds = fitRate(measurable(s.CPU), cpu)
	r.ReadBytes, r.WrittenBytes = fitRate(s.Read, read), fitRate(s.Written, written)
	return r
}

// measurable are the terms that a small graph tells the rates of.
func measurable(terms []term) []term {
	return slices.DeleteFunc(slices.Clone(terms), func(t term) bool { return t == perScan })
}
