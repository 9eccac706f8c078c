package answer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"giantstream/train/answer/filter"
	"giantstream/train/numeric"
)

// Each answer is the one with the highest marginal relevance of those that are left among the 200 nearest, as computed
// anew for each from the embeddings. The first answers do not depend on how many are asked for. Without diversity the
// order is the plain one. As many are answered as are allowed.
func TestDiversityChoosesByMarginalRelevance(t *testing.T) {
	w := sizes(t)
	where, err := filter.Parse(`parent exists`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Wanted{{K: 40}, {K: 25, Where: where, Exclude: []string{"node-0003"}},
		{K: 12, Distinct: "parent"}} {
		like := []Like{{ID: "node-0002", Weight: 1}, {ID: "node-0060", Weight: 0.5}}
		plain, err := w.Similar(like, want)
		if err != nil || len(plain.Neighbours) != want.K {
			t.Fatalf("%d neighbours, %v", len(plain.Neighbours), err)
		}
		nearest := want
		nearest.K = diversePool
		pool, err := w.Similar(like, nearest)
		if err != nil {
			t.Fatal(err)
		}
		vectors := map[string][]float32{}
		for _, n := range pool.Neighbours {
			v := make([]float32, w.now.Load().index.Dim())
			w.now.Load().index.Vector(n.ID, v)
			vectors[n.ID] = v
		}
		spread := math.Inf(1)
		for _, diversity := range []float64{0, 1e-9, 0.3, 0.5, 0.9, 1} {
			asked := want
			asked.Diversity = diversity
			got, err := w.Similar(like, asked)
			if err != nil || len(got.Neighbours) != want.K {
				t.Fatalf("diversity %v: %d neighbours, %v", diversity, len(got.Neighbours), err)
			}
			relevance := func(one Neighbour, chosen []Neighbour) float64 {
				highest := -1.0
				for _, c := range chosen {
					highest = max(highest, numeric.Cosine(vectors[one.ID], vectors[c.ID]))
				}
				return (1-diversity)*float64(one.Cosine) - diversity*highest
			}
			total := 0.0
			for i, one := range got.Neighbours {
				chosen := got.Neighbours[:i]
				score := relevance(one, chosen)
				for _, other := range pool.Neighbours {
					taken := slices.ContainsFunc(got.Neighbours[:i+1], func(n Neighbour) bool { return n.ID == other.ID })
					if another := relevance(other, chosen); !taken && another > score+1e-6 {
						t.Fatalf("diversity %v: answer %d is %s with %v, and %s has %v", diversity, i, one.ID, score,
							other.ID, another)
					}
				}
				for _, c := range chosen {
					total += numeric.Cosine(vectors[one.ID], vectors[c.ID])
				}
			}
			if same := slices.EqualFunc(got.Neighbours, plain.Neighbours, func(a, b Neighbour) bool {
				return a.ID == b.ID && a.Cosine == b.Cosine
			}); diversity == 0 && !same || got.Neighbours[0].ID != plain.Neighbours[0].ID {
				t.Errorf("diversity %v: %+v, plain %+v", diversity, got.Neighbours, plain.Neighbours)
			}
			if diversity == 0 || diversity == 0.5 {
				if total >= spread {
					t.Errorf("diversity %v: the answers are as alike as without (%v, %v)", diversity, total, spread)
				}
				spread = total
			}
			part := asked
			part.Offset, part.K = 3, 5
			some, err := w.Similar(like, part)
			if err != nil || !slices.EqualFunc(some.Neighbours, got.Neighbours[3:8], func(a, b Neighbour) bool {
				return a.ID == b.ID && a.Cosine == b.Cosine
			}) {
				t.Errorf("diversity %v: 3 to 8 are %+v, %v, want %+v", diversity, some.Neighbours, err, got.Neighbours[3:8])
			}
		}
	}
}

func TestDiversityOverHTTP(t *testing.T) {
	w := sizes(t)
	h := Handler(w.Catalog, Serving{})
	_, want := askGoesWith(t, h, "POST", "/similar", `{"id":"node-0002","k":9,"diversity":0.7}`)
	if _, got := askGoesWith(t, h, "GET", "/similar/node-0002?k=9&diversity=0.7", ""); got != want {
		t.Errorf("GET: %s, POST: %s", got, want)
	}
	for body, want := range map[string]string{
		`{"id":"node-0002","diversity":1.5}`:                   "diversity is 1.5; it can be from 0 to 1",
		`{"id":"node-0002","diversity":-0.1}`:                  "from 0 to 1",
		`{"id":"node-0002","k":90,"offset":11,"diversity":.5}`: "the question",
		`{"id":"node-0002","k":90,"offset":11,"diversity":1}`:  "offset and k are 101 together",
		`{"ids":["node-0002"],"diversity":0.5}`:                "unknown field",
	} {
		path := "/similar"
		if strings.Contains(body, "ids") {
			path = "/goes-with"
		}
		if code, got := askGoesWith(t, h, "POST", path, body); code != 400 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", body, code, got)
		}
	}
	for _, wrong := range []string{"x", "NaN", "2"} {
		code, got := askGoesWith(t, h, "GET", "/similar/node-0002?diversity="+wrong, "")
		if code != 400 || !strings.Contains(got, "diversity") {
			t.Errorf("%s: %d %s", wrong, code, got)
		}
	}
}
