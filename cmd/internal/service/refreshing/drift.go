package refreshing

import (
	"slices"
	"sync"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/wiring"
	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
)

// drift is what the process knows of how far the graph has gone from the generation being served. It costs no
// request and reads no row: every part is a by-product of other work.
type drift struct {
	mu sync.Mutex
	// rows and nodes are those of the last look at the commit logs (Refresh.Changes); nodes is 0 before it.
	rows, nodes int64
	// base is what was counted when the generation began to be served, fitted the share of its own texts.
	base   tfidf.NGrams
	fitted float64
}

// changed notes a look at the commit logs.
func (d *drift) changed(rows, nodes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows, d.nodes = rows, nodes
}

// serves notes that a generation begins to be served, and what was counted until then.
func (d *drift) serves(doc *generation.Doc, counted *tfidf.NGramCount) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base = tfidf.NGrams{Total: counted.Total(), Unknown: counted.Unknown()}
	d.fitted = doc.Vectorizer.UnknownShare
}

// Drift returns what is known now, nil before the first generation.
func (r *Refresh) Drift() *live.Drift {
	if r.Served.Current() == nil {
		return nil
	}
	out := &live.Drift{RefreshAt: r.Settings.Get().Refresh.MinChanges}
	d := &r.drift
	d.mu.Lock()
	defer d.mu.Unlock()
	out.NGramsUnknownFitted = new(d.fitted)
	counted := &r.metrics.ngrams
	n := tfidf.NGrams{Total: counted.Total() - d.base.Total, Unknown: counted.Unknown() - d.base.Unknown}
	if n.Total > 0 {
		out.NGramsUnknown = new(n.Share())
	}
	if d.nodes > 0 {
		out.Rows, out.RowsShare = new(d.rows), new(float64(d.rows)/float64(d.nodes))
		if out.RefreshAt >= 1 { // a number of rows
			out.RefreshAt /= float64(d.nodes)
		}
	}
	if e, t := r.Evidence.Load(), wiring.DriftThresholds(r.Settings.Get()); e != nil &&
		e.Generation == r.Served.Current().Doc.Generation {
		out.Measures = slices.Collect(e.Findings(t))
		if out.NeedsShare = r.Settings.Get().Refresh.Drift.MinChanges; out.NeedsShare >= 1 {
			out.NeedsShare /= float64(max(1, d.nodes))
		}
	}
	out.Embeddings = r.Moved()
	return out
}
