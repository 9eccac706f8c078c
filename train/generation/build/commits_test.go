package build

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// commits is a commit log of one shard in memory: row i was committed by
// manifest seq[i].
type commits struct {
	row []rows.Row
	seq []int64
}

func (c *commits) add(seq int64, r rows.Row) { c.row, c.seq = append(c.row, r), append(c.seq, seq) }

// commitsAt are the commits at a cut. It implements Log.
type commitsAt struct {
	*commits
	cut map[int]int64
}

func (c commitsAt) Cut() map[int]int64 { return maps.Clone(c.cut) }

func (c commitsAt) Size(context.Context) (stages.Size, error) {
	return stages.Size{Rows: int64(len(c.row)), Splits: []stages.Split{{To: 1}, {After: 1, To: c.cut[0]}}}, nil
}

func (c commitsAt) Rows(_ context.Context, s stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for i, r := range c.row {
			if c.seq[i] > s.After && c.seq[i] <= s.To && !yield(generation.Row{Row: r, Seq: c.seq[i]}, nil) {
				return
			}
		}
	}
}

func (commitsAt) Orders(context.Context, int) iter.Seq2[rows.Order, error] { return noOrders }

func (commitsAt) Vectors(context.Context, int) iter.Seq2[rows.Vectors, error] { return noVectors }

func (c commitsAt) Fingerprint() work.Fingerprint { return commitlog.NewGraphHasher() }

const topicCount = 8

// grown commits 320 nodes of 8 topics with manifest 1, without the links to
// what comes later, and 80 more and the rows that link to them with manifest
// 2, which deletes node-0000 as well.
func grown() *commits {
	all := graphtest.Rows(400, topicCount)
	log := &commits{}
	known := func(r rows.Row, before string) rows.Row {
		r.Labels = slices.DeleteFunc(slices.Clone(r.Labels), func(l string) bool { return l >= before })
		return r
	}
	for _, r := range all[:320] {
		log.add(1, known(r, "node-0320"))
	}
	for i, r := range all {
		if i >= 320 || len(known(r, "node-0320").Labels) < len(r.Labels) {
			log.add(2, r)
		}
	}
	log.add(2, rows.Row{NodeID: "node-0000", Deleted: true, EventTime: 2})
	return log
}

// testBuild builds generations of commits.
type testBuild struct {
	*Worker
	Request
}

// until builds the next generation at a cut, nil for the newest, up to a stage.
func (b *testBuild) until(ctx context.Context, log *commits, cut map[int]int64, stage string) (*generation.Doc, error) {
	b.Worker.Log = func(_ context.Context, at map[int]int64) (work.Log, error) {
		switch {
		case at != nil:
			return commitsAt{log, at}, nil
		case cut != nil:
			return commitsAt{log, cut}, nil
		}
		return commitsAt{log, map[int]int64{0: slices.Max(log.seq)}}, nil
	}
	return b.Build(ctx, b.Request, stage)
}

func builder(store sink.Store) *testBuild {
	s := fit.Settings{
		Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16, Weighting: "sum",
		LabelFeatures: "pifa",
		LeafSize:      6, Branching: 3, // a tree of several levels, of which none halves the one above
		Encoder: "linear", Seed: 1, Holdout: 0.05, EvalSeed: 1,
	}
	return &testBuild{&Worker{Means: work.Means{Store: store, Resources: fit.Resources{Workers: 2, MemoryLimit: 1 << 30,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(0, 0) }}}},
		Request{Settings: s, Shards: 1}}
}

// compact are the metrics of an encoder on one line.
func compact(t *testing.T, doc *generation.Doc) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, doc.Encoder.Metrics); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// buildWith builds generation g, which is the next, at a cut, nil for the newest.
func buildWith(t *testing.T, b *testBuild, g int64, log *commits, cut map[int]int64) *generation.Doc {
	t.Helper()
	doc, err := b.until(t.Context(), log, cut, stages.Finish)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Generation != g {
		t.Fatalf("generation %d was built, not %d", doc.Generation, g)
	}
	return doc
}

func TestLabelsInNoClusterAreCounted(t *testing.T) {
	store, log := &memstore.Store{}, grown()
	g, err := generation.Open(t.Context(), store, buildWith(t, builder(store), 1, log, map[int]int64{0: 1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	row := rows.Row{NodeID: "x", Text: "the topic1word2", Labels: []string{"node-0001", "node-0399", "nobody"}}
	if err := g.Featurize(&row); err != nil {
		t.Fatal(err)
	}
	if n := g.UnknownLabels.Load(); n != 2 || !slices.Equal(row.TargetCounts[0], []int32{1}) {
		t.Errorf("%d labels unknown, counts %v; want 2 and one counted", n, row.TargetCounts)
	}
	if g.Doc.Vectorizer.Features != g.Vectorizer.Dim() {
		t.Errorf("generation.json has %d features, the vectorizer %d", g.Doc.Vectorizer.Features, g.Vectorizer.Dim())
	}
	known := g.NGrams.Unknown()
	row.Text = "quixotic"
	if err := g.Featurize(&row); err != nil {
		t.Fatal(err)
	}
	if total, unknown := g.NGrams.Total(), g.NGrams.Unknown()-known; unknown < 8 ||
		unknown >= total { // the word and most of its runs of letters
		t.Errorf("%d n-grams of a new word unknown, of %d in all", unknown, total)
	}
}

func TestAGenerationMapsTheClustersOfItsParent(t *testing.T) {
	store, log := &memstore.Store{}, grown()
	b := builder(store)
	if doc := buildWith(t, b, 1, log, map[int]int64{0: 1}); doc.Mapping != nil {
		t.Errorf("a generation without parent has the mapping %+v", doc.Mapping)
	}
	doc := buildWith(t, b, 2, log, nil)
	m := doc.Mapping
	if m == nil || m.Shared != 319 || m.New != 80 || m.Gone != 1 || m.UnknownLinks == 0 {
		t.Fatalf("mapping %+v; want 319 labels shared, 80 new, 1 gone", m)
	}
	type flow struct {
		OldLevel int32
		Labels   int64
	}
	got := make([]int64, len(m.Levels))
	columns := []parquetio.Column[flow]{
		parquetio.Scalar("old_level", parquetio.Int32(), func(f *flow, v int32) { f.OldLevel = v }),
		parquetio.Scalar("labels", parquetio.Int64(), func(f *flow, v int64) { f.Labels = v }),
	}
	for f, err := range parquetio.Get(t.Context(), store, sink.Ref{Key: generation.Prefix(2) + "mapping.parquet",
		Bytes:    doc.Files["mapping.parquet"].Bytes,
		Checksum: doc.Files["mapping.parquet"].Checksum},
		func(sink.Object) (string, []parquetio.Column[flow], error) { return "mapping/1", columns, nil }) {
		if err != nil {
			t.Fatal(err)
		}
		got[f.OldLevel] += f.Labels
	}
	for i, level := range m.Levels {
		if got[i] != int64(level.Labels) || level.Labels < 300 {
			t.Errorf("level %d: %d labels flow in the file, %d in the document", i, got[i], level.Labels)
		}
		if level.Matched <= 0 || level.Matched > 1 || math.IsNaN(level.AMI) || level.AMI < 0.1 || level.AMI > 1 {
			t.Errorf("level %+v", level)
		}
	}
}
