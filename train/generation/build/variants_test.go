package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/pifa"
	"giantstream/featurize/sparse"
	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// variant is a kind of build that has stages of its own.
type variant struct {
	name string
	set  func(*fit.Settings)
	// parent is how many of the rows make a first generation, 0 for none.
	parent int
	stages []string
}

func variants() []variant {
	features := func(kind pifa.Kind) variant {
		return variant{string(kind), func(s *fit.Settings) { s.LabelFeatures = string(kind) }, 0,
			[]string{stages.Features}}
	}
	return []variant{features(pifa.Text), features(pifa.PIFAIdentity), features(pifa.RandomFeatures),
		{"neighbours", func(s *fit.Settings) { s.MissingText = fit.Neighbours }, 0, []string{stages.Fill}},
		{"parent", func(*fit.Settings) {}, 400, []string{stages.Mapping, stages.Compare}},
		{"averaged", func(s *fit.Settings) { s.Encoder, s.Epochs = "hybrid", 1 }, 450,
			[]string{stages.Mapping, stages.Compare}},
		{"parent and neighbours", func(s *fit.Settings) { s.MissingText = fit.Neighbours }, 400,
			[]string{stages.Fill, stages.Mapping, stages.Compare}},
	}
}

// build builds the variant, in a store that has the parent if there is one.
func (v variant) build(t *testing.T, all []rows.Row, partitions int, engine tasks.Engine) (sink.Store,
	*generation.Doc) {
	t.Helper()
	store := &memstore.Store{}
	b := v.setup(t, store, all)
	plan := b.begin(t, partitions, 0)
	for _, name := range v.stages {
		if _, ok := plan.Find(name); !ok {
			t.Errorf("%s: the plan has no stage %s", v.name, name)
		}
	}
	return store, b.run(t, plan, engine)
}

// setup has built the parent, if there is one.
func (v variant) setup(t *testing.T, store sink.Store, all []rows.Row) *setup {
	t.Helper()
	s := settings()
	if v.name == "averaged" {
		v.set(&s) // with a parent of the same kind
	}
	if v.parent > 0 {
		b := newSetup(store, logsOf(all[:v.parent], 2, 1), s)
		b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 2})
	}
	v.set(&s)
	b := newSetup(store, logsOf(all, 2, 1), s)
	return b
}

// outcome is what a build says, whatever the parts of its files: sums of other objects, figures and embeddings.
func outcome(t *testing.T, store sink.Store, doc *generation.Doc) map[string][32]byte {
	t.Helper()
	sums := digests(t, store)
	for key := range sums {
		if strings.Contains(key, "/part-") || strings.HasSuffix(key, "generation.json") {
			delete(sums, key)
		}
	}
	figures, err := json.Marshal([]any{doc.Graph, doc.Tree, doc.Mapping, doc.Overlap, doc.Evaluation})
	if err != nil {
		t.Fatal(err)
	}
	sums["figures"] = sha256.Sum256(figures)
	var records [][]byte
	for _, r := range recordsOf(t, store, doc) {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, text)
	}
	slices.SortFunc(records, bytes.Compare)
	sums["records"] = sha256.Sum256(bytes.Join(records, nil))
	return sums
}

func recordsOf(t *testing.T, store sink.Store, doc *generation.Doc) (all []embedding.Record) {
	t.Helper()
	for _, p := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(t.Context(), store, p.Ref()) {
			if err != nil {
				t.Fatal(err)
			}
			r.Vector = slices.Clone(r.Vector)
			r.NodeID = strings.Clone(r.NodeID)
			all = append(all, r)
		}
	}
	return all
}

// Workers, the order of tasks and the number of partitions change nothing of the stages that only some builds have.
func TestVariantsAreTheSameHoweverTheyAreDivided(t *testing.T) {
	race.SkipComputing(t)
	all := classed(graphtest.Rows(500, 8), 8)
	for _, v := range variants() {
		store, doc := v.build(t, all, 4, tasks.Local{Workers: 1})
		want := outcome(t, store, doc)
		for name, divided := range map[string]struct {
			partitions int
			engine     tasks.Engine
		}{"2 workers": {4, tasks.Local{Workers: 2}}, "7 workers": {4, tasks.Local{Workers: 7}},
			"shuffled": {4, shuffled{3}}, "1 partition": {1, tasks.Local{}}, "16 partitions": {16, tasks.Local{}}} {
			if testing.Short() && name != "shuffled" && name != "16 partitions" {
				continue
			}
			store, doc := v.build(t, all, divided.partitions, divided.engine)
			same(t, v.name+", "+name, want, outcome(t, store, doc))
		}
	}
}

// What the plan says that the stages of variants read is what their tasks read.
func TestPlanSaysWhatVariantsRead(t *testing.T) {
	race.SkipComputing(t)
	for _, v := range variants() {
		store := &memstore.Store{}
		b := v.setup(t, store, classed(graphtest.Rows(500, 6), 6))
		planReads(t, store, b, b.begin(t, 4, 0))
	}
}

// The identities' features are those that a graph in memory has in the same order, bit for bit.
func TestIdentitiesAreThoseOfAGraphInMemory(t *testing.T) {
	all := graphtest.Rows(300, 6)
	s := settings()
	s.LabelFeatures, s.Holdout = string(pifa.PIFAIdentity), 0
	b := newSetup(&memstore.Store{}, logsOf(all, 2, 1), s)
	plan := b.begin(t, 4, 0)
	for _, stage := range plan.Stages() {
		if stage.Name == stages.Trunk {
			break
		}
		if err := (tasks.Local{}).Run(t.Context(), plan.TasksOf(stage), b.worker); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(x, y rows.Row) int {
		if hx, hy := graph.HashOf(x.NodeID), graph.HashOf(y.NodeID); hx != hy {
			if hx < hy {
				return -1
			}
			return 1
		}
		return strings.Compare(x.NodeID, y.NodeID)
	})
	at := map[string]int32{}
	for i, r := range all {
		at[r.NodeID] = int32(i)
	}
	graph := &sparse.Matrix{Cols: len(all), Start: []int64{0}}
	for _, r := range all {
		var row sparse.Vector
		for _, l := range r.Labels {
			row.Index = append(row.Index, at[l])
		}
		slices.Sort(row.Index)
		graph.Append(row)
	}
	weighting, err := pifa.ParseWeighting(s.Weighting)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pifa.LabelFeatures(pifa.PIFAIdentity, pifa.Source{Projected: make([]float32, len(all)*s.EmbeddingDim),
		Dim: s.EmbeddingDim, Labels: graph, Weighting: weighting, Seed: s.TreeSeed})
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	for p := range plan.Partitions {
		key := fmt.Sprintf("%s%s/%05d/rows", stages.TasksPrefix(1), stages.Features, p)
		data, err := sink.ReadAll(t.Context(), b.worker.Store, key)
		if err != nil {
			t.Fatal(err)
		}
		part := make([]float32, len(data)/4)
		sections.ReadFloats(data, part)
		got = append(got, part...)
	}
	if !slices.Equal(got, want) {
		t.Error("other features")
	}
}

// A node without text has the direction of the sum of its neighbours' embeddings.
func TestNodesWithoutTextHaveTheirNeighbours(t *testing.T) {
	all := classed(graphtest.Rows(500, 8), 8)
	v := variants()[3]
	store, doc := v.build(t, all, 8, tasks.Local{})
	records := map[string]embedding.Record{}
	for _, r := range recordsOf(t, store, doc) {
		records[r.NodeID] = r
	}
	filled := 0
	for _, row := range all {
		r := records[row.NodeID]
		if r.Status != embedding.FromNeighbours {
			if (r.Status == embedding.NoText) != (row.Text == "") {
				t.Errorf("%s: status %q of the text %q", row.NodeID, r.Status, row.Text)
			}
			continue
		}
		filled++
		sum := make([]float64, len(r.Vector))
		for _, l := range row.Labels {
			if n, ok := records[l]; ok && n.Status == embedding.FromText && l != row.NodeID {
				for k, x := range n.Vector {
					sum[k] += float64(x)
				}
			}
		}
		var cosine, square float64
		for k, x := range sum {
			cosine, square = cosine+x*float64(r.Vector[k]), square+x*x
		}
		if cosine /= math.Sqrt(square); cosine < 0.99999 {
			t.Errorf("%s: cosine %v with the sum of its neighbours", row.NodeID, cosine)
		}
	}
	if filled < 5 || filled != doc.Graph.FromNeighbours || doc.Graph.NoText < filled {
		t.Errorf("%d nodes have embeddings of neighbours, the document says %+v", filled, doc.Graph)
	}
}

// The same graph twice has the same tree, and its embeddings stay where they were; a graph that has grown shares some.
func TestParentsAreComparedWith(t *testing.T) {
	all := graphtest.Rows(500, 8)
	for _, nodes := range []int{500, 400} {
		_, doc := variant{"parent", func(*fit.Settings) {}, nodes, nil}.build(t, all, 4, tasks.Local{})
		m, o := doc.Mapping, doc.Overlap
		if m == nil || o == nil || m.Shared != nodes || m.New != 500-nodes || m.Gone != 0 || o.Nodes > nodes {
			t.Fatalf("%d nodes: mapping %+v, overlap %+v", nodes, m, o)
		}
		for _, l := range m.Levels {
			if same := l.AMI > 0.999999 && l.Matched == 1; same != (nodes == 500) {
				t.Errorf("%d nodes: level %+v", nodes, l)
			}
		}
		if (nodes == 500) != (m.UnknownLinks == 0) || o.Kept < 0.3 || nodes == 500 && o.Kept < 0.99 ||
			len(o.ByDegree) == 0 {
			t.Errorf("%d nodes: %d unknown links, overlap %+v", nodes, m.UnknownLinks, o)
		}
	}
}

// A parent that is gone leaves a generation without comparisons.
func TestAParentThatIsGone(t *testing.T) {
	all := graphtest.Rows(300, 6)
	store := &memstore.Store{}
	first := newSetup(store, logsOf(all, 1, 1), settings())
	first.run(t, first.begin(t, 2, 0), tasks.Local{})
	b := newSetup(store, logsOf(all, 1, 1), settings())
	plan := b.begin(t, 2, 0)
	for info, err := range store.List(t.Context(), generation.Prefix(1), "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), info.Key); err != nil {
			t.Fatal(err)
		}
	}
	doc := b.run(t, plan, tasks.Local{})
	if doc.Status != generation.Ready || doc.Mapping != nil || doc.Overlap != nil {
		t.Errorf("%s", fmt.Sprint(doc.Status, doc.Mapping, doc.Overlap))
	}
}
