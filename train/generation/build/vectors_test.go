package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

// vectorLogs is a commit log with vectors, by shard.
type vectorLogs struct {
	shardLogs
	vectors [][]rows.Vectors
}

func (l vectorLogs) Size(ctx context.Context) (stages.Size, error) {
	s, err := l.shardLogs.Size(ctx)
	s.Vectors = true
	return s, err
}

func (l vectorLogs) Vectors(_ context.Context, shard int) iter.Seq2[rows.Vectors, error] {
	return func(yield func(rows.Vectors, error) bool) {
		for _, v := range l.vectors[shard] {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// vectorsOf deals rows of vectors out to shards, in a random order.
func vectorsOf(all []rows.Vectors, shards int, seed uint64) [][]rows.Vectors {
	out := make([][]rows.Vectors, shards)
	r := rand.New(rand.NewPCG(seed, 4))
	for _, k := range r.Perm(len(all)) {
		shard := int(graph.HashOf(all[k].NodeID) % uint64(shards))
		out[shard] = append(out[shard], all[k])
	}
	return out
}

// stated are the vectors of a node.
func stated(id string, named map[string][]float32) rows.Vectors {
	v := rows.Vectors{NodeID: id, EventTime: 1}
	for _, name := range []string{"image", "noise", "rare"} {
		if x, ok := named[name]; ok {
			var b []byte
			for _, f := range x {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
			}
			v.Names, v.Bits, v.Values = append(v.Names, name), append(v.Bits, 32), append(v.Values, b)
		}
	}
	return v
}

const seenLength = 24

// seenGraph are nodes of groups whose members are linked, whose texts say nothing of them. A vector "image" does, of
// those for which has is true; "noise" says nothing, and few have one that is "rare".
func seenGraph(n, groups int, has func(i int) bool) (all []rows.Row, vectors []rows.Vectors) {
	r := rand.New(rand.NewPCG(9, 9))
	draw := func(scale float64) []float32 {
		x := make([]float32, seenLength)
		for k := range x {
			x[k] = float32(scale * r.NormFloat64())
		}
		return x
	}
	all = make([]rows.Row, n)
	centres := make([][]float32, groups)
	for g := range centres {
		centres[g] = draw(1)
	}
	for i := range all {
		all[i] = rows.Row{NodeID: fmt.Sprintf("node-%05d", i), EventTime: 1}
		var words []string
		for range 12 {
			words = append(words, fmt.Sprintf("word%d", r.IntN(60)))
		}
		all[i].Text = strings.Join(words, " ")
		named := map[string][]float32{"noise": draw(3)}
		if has(i) {
			named["image"] = draw(0.7)
			for k, c := range centres[i%groups] {
				named["image"][k] += c + 5 // all lie to one side
			}
		}
		if i%29 == 0 {
			named["rare"] = draw(1)
		}
		vectors = append(vectors, stated(all[i].NodeID, named))
	}
	for i := range all {
		for range 4 {
			j := (i%groups + groups*r.IntN(n/groups)) % n
			if j != i {
				all[i].Labels, all[j].Labels = append(all[i].Labels, all[j].NodeID), append(all[j].Labels, all[i].NodeID)
			}
		}
	}
	for i := range all {
		slices.Sort(all[i].Labels)
		all[i].Labels = slices.Compact(all[i].Labels)
	}
	return all, vectors
}

func viewSettings() fit.Settings {
	s := settings()
	s.Encoder, s.Epochs, s.LeafSize = "hybrid", 1, 20
	return s
}

// buildSeen builds a generation of the graph.
func buildSeen(t *testing.T, all []rows.Row, vectors []rows.Vectors, shards, partitions int, engine tasks.Engine) (
	*generation.Doc, *memstore.Store) {
	t.Helper()
	log := vectorLogs{logsOf(all, shards, 1), vectorsOf(vectors, shards, uint64(partitions))}
	store := &memstore.Store{}
	b := newSetup(store, log.shardLogs, viewSettings())
	b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
	return b.run(t, b.begin(t, partitions, 0), engine), store
}

// Of the items' own vectors, those count that say what goes together, as far as items have them. Others weigh nothing.
// The result is the same for any division of the work and of the log.
func TestVectorsAreViews(t *testing.T) {
	race.SkipComputing(t)
	all, vectors := seenGraph(600, 20, func(int) bool { return true })
	half, halfVectors := seenGraph(600, 20, func(i int) bool { return i/20%2 == 0 })
	doc, store := buildSeen(t, all, vectors, 1, 1, tasks.Local{Workers: 1})
	without, _ := buildSeen(t, all, nil, 1, 1, tasks.Local{Workers: 1})
	some, halfStore := buildSeen(t, half, halfVectors, 2, 4, shuffled{3})
	auc := func(d *generation.Doc) float64 { return d.Evaluation[len(d.Evaluation)-1].Links.AUC }
	for gain, d := range map[float64]*generation.Doc{0.1: doc, 0.05: some} {
		v := d.Graph.Vectors
		if len(v) != 3 || v[0].Name != "image" || v[1].Name != "noise" || v[2].Name != "rare" {
			t.Fatalf("the vectors are %+v", v)
		}
		if !(v[0].Weight > 0) || v[0].Length != seenLength || v[0].Dim != seenLength || v[1].Weight != 0 ||
			v[1].Items != 600 || v[1].Asked < 50 || v[2].Weight != 0 || v[2].Dim != 0 {
			t.Errorf("the vectors weigh %+v", v)
		}
		if !(auc(d) > auc(without)+gain) {
			t.Errorf("with vectors the AUC of hidden links is %.3f, without %.3f", auc(d), auc(without))
		}
	}
	if n := doc.Graph.Vectors[0].Items; n != 600 {
		t.Errorf("%d items have an image", n)
	}
	if n := some.Graph.Vectors[0].Items; n != 300 {
		t.Errorf("%d items have an image, of half", n)
	}
	sums := digests(t, store)
	for _, c := range [][2]int{{3, 1}, {2, 4}} {
		_, other := buildSeen(t, all, vectors, c[0], c[1], shuffled{1})
		got := digests(t, other)
		for key, sum := range sums {
			if !strings.Contains(key, "/part-") && !strings.HasSuffix(key, "generation.json") && got[key] != sum {
				t.Errorf("%d shards, %d partitions: %s differs", c[0], c[1], key)
			}
		}
	}
	g, err := generation.Open(t.Context(), halfStore, some, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(g.Encoder.(*hybrid.Encoder).Views().Vectors); n != 1 {
		t.Errorf("the encoder has %d views of vectors", n)
	}
	dim := g.Encoder.Dim()
	texts, out := []string{half[0].Text, half[0].Text, half[20].Text, half[20].Text}, make([]float32, 4*dim)
	if err := g.Encode([]string{half[0].NodeID, "unknown", half[20].NodeID, "unknown"}, texts, out); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(out[:dim], out[dim:2*dim]) || !slices.Equal(out[2*dim:3*dim], out[3*dim:]) {
		t.Errorf("an item with an image, its text, an item without and its text are %v", out)
	}

	// Who follows the log has the embeddings that a build makes of the same vectors, and others none of it.
	f := g.Following()
	seen := halfVectors[0]
	seen.NodeID = "unknown"
	f.Follow(&seen)
	f.Follow(&rows.Vectors{NodeID: half[40].NodeID}) // it has none any more
	f.Follow(&rows.Vectors{NodeID: half[0].NodeID, Input: 1})
	got := make([]float32, 4*dim)
	ids := []string{half[0].NodeID, "unknown", half[40].NodeID, "nobody"}
	texts[2], texts[3] = half[40].Text, half[40].Text
	if err := f.Encode(ids, texts, got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[:dim], out[:dim]) || !slices.Equal(got[dim:2*dim], out[:dim]) ||
		!slices.Equal(got[2*dim:3*dim], got[3*dim:]) {
		t.Errorf("an item with an image, another with the same, one that has none any more and its text are %v", got)
	}
	if err := g.Encode(ids, texts, got); err != nil || !slices.Equal(got[dim:2*dim], out[dim:2*dim]) ||
		slices.Equal(got[2*dim:3*dim], got[3*dim:]) {
		t.Errorf("the generation at its cut has %v, %v", got, err)
	}
}

// Where no vector helps, and where there is none, the generation is that of a log without vectors, to the byte.
func TestVectorsThatSayNothingChangeNothing(t *testing.T) {
	race.SkipComputing(t)
	all, vectors := seenGraph(600, 20, func(int) bool { return false })
	_, plain := buildSeen(t, all, nil, 1, 2, tasks.Local{Workers: 2})
	doc, store := buildSeen(t, all, vectors, 1, 2, tasks.Local{Workers: 2})
	if v := doc.Graph.Vectors; len(v) != 2 || v[0].Weight != 0 {
		t.Fatalf("the vectors weigh %+v", v)
	}
	want, got := digests(t, plain), digests(t, store)
	for key, sum := range want {
		if !strings.HasSuffix(key, "generation.json") && got[key] != sum {
			t.Errorf("%s differs", key)
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d objects, %d with vectors", len(want), len(got))
	}
}

// A generation that follows one lies where that does, with vectors as without.
func TestVectorsInTheNextGeneration(t *testing.T) {
	race.SkipComputing(t)
	all, vectors := seenGraph(600, 20, func(int) bool { return true })
	store := &memstore.Store{}
	var of [2][]float32
	for k, rows := range [][]rows.Vectors{vectors[:500], vectors} {
		log := vectorLogs{logsOf(all, 1, 1), vectorsOf(rows, 1, 1)}
		b := newSetup(store, log.shardLogs, viewSettings())
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		doc := b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 2})
		if doc.Space != 1 || !(doc.Graph.Vectors[0].Weight > 0) {
			t.Fatalf("generation %d is in the space %d, and the vectors weigh %+v", doc.Generation, doc.Space,
				doc.Graph.Vectors)
		}
		g, err := generation.Open(t.Context(), store, doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		of[k] = make([]float32, 400*g.Encoder.Dim())
		var ids, texts []string
		for _, r := range all[:400] {
			ids, texts = append(ids, r.NodeID), append(texts, r.Text)
		}
		if err := g.Encode(ids, texts, of[k]); err != nil {
			t.Fatal(err)
		}
	}
	same := 0.0
	for at := 0; at < len(of[0]); at += len(of[0]) / 400 {
		same += numeric.Cosine(of[0][at:at+len(of[0])/400], of[1][at:at+len(of[0])/400]) / 400
	}
	if !(same > 0.8) {
		t.Errorf("the embeddings of two generations have a mean cosine of %.3f", same)
	}
}
