package build

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/featurize/pairs"
	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// related states the links of rows: every one of the kind "good", of the given weight, and beside them random links of
// the kind "noise".
func related(all []rows.Row, noise int, weight float32) []rows.Row {
	r := rand.New(rand.NewPCG(3, 3))
	number, links := map[string]int{}, make([]map[string][]rows.Link, len(all))
	for i, row := range all {
		number[row.NodeID], links[i] = i, map[string][]rows.Link{}
	}
	add := func(from, to int, kind string, time int64) {
		end := all[to].NodeID
		links[from][end] = append(links[from][end], rows.Link{Kind: kind, Weight: weight, Time: time})
	}
	for i, row := range all {
		for _, end := range row.Labels {
			if j, ok := number[end]; ok {
				add(i, j, "good", int64(1+min(i, j)))
			} else {
				links[i][end] = append(links[i][end], rows.Link{Kind: "good", Weight: weight, Time: 1})
			}
		}
	}
	for k := range noise {
		i, j := r.IntN(len(all)), r.IntN(len(all))
		if _, linked := links[i][all[j].NodeID]; i != j && !linked {
			add(i, j, "noise", int64(k))
			add(j, i, "noise", int64(k))
		}
	}
	out := slices.Clone(all)
	for i := range out {
		out[i].Labels = nil
		for _, end := range slices.Sorted(maps.Keys(links[i])) {
			out[i].AddLabel(end, links[i][end]...)
		}
	}
	return out
}

func weighted(s fit.Settings) fit.Settings {
	s.Relations = &fit.Relations{}
	return s
}

// built builds rows and returns the store's digests, without those of the document and of Parquet files that name it.
func built(t *testing.T, all []rows.Row, s fit.Settings, partitions, workers int) (map[string][32]byte,
	*generation.Doc) {
	t.Helper()
	store := &memstore.Store{}
	b := newSetup(store, logsOf(all, 2, 1), s)
	doc := b.run(t, b.begin(t, partitions, 0), tasks.Local{Workers: workers})
	of := digests(t, store)
	for key := range of {
		if strings.HasSuffix(key, "/generation.json") {
			delete(of, key)
		}
	}
	return of, doc
}

// Where all links have one kind and one weight, weights change no byte of what a generation has, whatever the unit, the
// partitions and the workers.
func TestEqualWeightsChangeNoByte(t *testing.T) {
	race.SkipComputing(t)
	plain := classed(graphtest.Rows(400, 8), 8)
	for i := range plain { // a fact of a link is about one label
		plain[i].Labels = slices.Compact(plain[i].Labels)
	}
	for _, encoder := range []string{"linear", "hybrid"} {
		s := settings()
		s.Encoder = encoder
		want, _ := built(t, plain, s, 8, 2)
		for _, weight := range []float32{1, 40} {
			got, doc := built(t, related(plain, 0, weight), weighted(s), 8, 2)
			same(t, fmt.Sprintf("%s, weight %g", encoder, weight), want, got)
			if r := doc.Graph.Relations; len(r) != 1 || r[0].Kind != "good" || r[0].Weight != 1 {
				t.Errorf("%s: relations %+v", encoder, r)
			}
		}
	}
	noisy := related(plain, 3000, 2)
	want, _ := built(t, noisy, weighted(settings()), 8, 1)
	got, _ := built(t, noisy, weighted(settings()), 8, 7)
	same(t, "7 workers", want, got)
}

// A kind of random links weighs nothing, and is in no neighbourhood: the embeddings tell links that the evaluation
// hides as well as without it.
func TestNoiseIsLeftOut(t *testing.T) {
	race.SkipComputing(t)
	plain := classed(graphtest.Rows(600, 8), 8)
	noisy := related(plain, 6000, 1)
	_, doc := built(t, noisy, weighted(settings()), 4, 2)
	_, equal := built(t, noisy, settings(), 4, 2)
	_, without := built(t, related(plain, 0, 1), settings(), 4, 2)
	weights := map[string]float64{}
	for _, r := range doc.Graph.Relations {
		weights[r.Kind] = r.Weight
	}
	if weights["good"] != 1 || weights["noise"] != 0 {
		t.Fatalf("relations %+v", doc.Graph.Relations)
	}
	if doc.Graph.Links != without.Graph.Links || doc.Graph.Weightless == 0 ||
		doc.Graph.Links+doc.Graph.Weightless != equal.Graph.Links {
		t.Errorf("%d links, %d weigh nothing; %d without noise, %d with it", doc.Graph.Links, doc.Graph.Weightless,
			without.Graph.Links, equal.Graph.Links)
	}
	auc := func(d *generation.Doc) float64 { return d.Evaluation[len(d.Evaluation)-1].Links.AUC }
	if auc(doc) < auc(without)-0.01 {
		t.Errorf("AUC %.3f, %.3f without noise", auc(doc), auc(without))
	}
}

// Old links weigh less, by the newest link of the cut.
func TestLinksLoseWeightWithAge(t *testing.T) {
	race.SkipComputing(t)
	plain := classed(graphtest.Rows(300, 6), 6)
	aged := related(plain, 0, 1)
	s := weighted(settings())
	want, _ := built(t, aged, s, 4, 2)
	s.Relations = &fit.Relations{HalfLife: 50 * time.Microsecond}
	got, _ := built(t, aged, s, 4, 2)
	if maps.Equal(want, got) {
		t.Error("a half-life changes nothing")
	}
	for i := range aged { // what counts is the age
		for k := range aged[i].LinkTimes {
			aged[i].LinkTimes[k] += 1e6
		}
	}
	later, _ := built(t, aged, s, 4, 2)
	same(t, "a second later", got, later)
}

// Links from orders are a relation beside the kinds. The plan names what each stage reads.
func TestOrdersAreARelation(t *testing.T) {
	race.SkipComputing(t)
	const topics = 8
	plain := classed(graphtest.Rows(400, topics), topics)
	orders := randomOrders(plain, topics, 2)
	log := orderedLogs{logsOf(related(plain, 4000, 1), 2, 1), [][]rows.Order{orders[:100], orders[100:]}}
	s := weighted(settings())
	s.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 2, MinAssociation: 0.02, MaxPartners: 8}
	var want map[string][32]byte
	for _, partitions := range []int{1, 8} {
		store := &memstore.Store{}
		b := newSetup(store, log.shardLogs, s)
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		planReads(t, store, b, b.begin(t, partitions, 0))
		doc, err := generation.Load(t.Context(), store, 1)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, r := range doc.Graph.Relations {
			found[r.Name()] = r.Weight
		}
		if len(found) != 3 || found["noise"] != 0 || found["good"] < 0.5 || found["links from orders"] < 0.5 {
			t.Errorf("%d partitions: relations %v", partitions, found)
		}
		got, err := encoderOf(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if len(got) == 0 || !maps.Equal(want, got) {
			t.Errorf("%d partitions train another encoder than one", partitions)
		}
	}
}

// encoderOf returns the digests of the files of the encoder.
func encoderOf(ctx context.Context, store *memstore.Store) (map[string][32]byte, error) {
	all := map[string][32]byte{}
	for info, err := range store.List(ctx, generation.Prefix(1)+generation.EncoderName+"/", "") {
		if err != nil {
			return nil, err
		}
		data, err := sink.ReadAll(ctx, store, info.Key)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(info.Key, ".json") {
			all[info.Key] = sha256.Sum256(data)
		}
	}
	return all, nil
}
