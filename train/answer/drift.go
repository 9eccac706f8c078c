package answer

import (
	"sync"

	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

// Drift says how far the nodes have moved since the generation being served: of what was committed after its cut,
// each row is compared with the embedding that the node had before.
type Drift struct {
	Generation int64 `json:"generation"`
	// Compared rows had an embedding before and have one now, Added ones had none before, Removed ones have none now.
	Compared int `json:"compared"`
	Added    int `json:"added"`
	Removed  int `json:"removed"`
	// Cosine is the mean cosine of the old and the new embedding of the compared rows, 1 where only links have
	// changed; nil for none.
	Cosine *float64 `json:"cosine,omitempty"`
	// Moved is the share of the compared rows with a cosine below eval.MovedBelow, nil for none.
	Moved *float64 `json:"moved,omitempty"`
}

// drift adds up a Drift, safe for concurrent use.
type drift struct {
	mu                                sync.Mutex
	compared, added, removed, movedOf int
	cosines                           float64
}

// compare notes a row whose node had the vector old and has the vector now, nil for none.
func (d *drift) compare(old, now []float32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(old)+len(now) == 0:
	case len(old) == 0:
		d.added++
	case len(now) == 0:
		d.removed++
	default:
		cosine := numeric.Cosine(old, now)
		d.compared++
		d.cosines += cosine
		if cosine < eval.MovedBelow {
			d.movedOf++
		}
	}
}

// Drift returns ErrEmpty as long as there is no generation.
func (c *Catalog) Drift() (Drift, error) {
	s := c.now.Load()
	if s == nil {
		return Drift{}, ErrEmpty
	}
	d := &s.drift
	d.mu.Lock()
	defer d.mu.Unlock()
	out := Drift{Generation: s.generation.Doc.Generation, Compared: d.compared, Added: d.added, Removed: d.removed}
	if n := float64(d.compared); n > 0 {
		out.Cosine, out.Moved = new(d.cosines/n), new(float64(d.movedOf)/n)
	}
	return out, nil
}
