package answer

import (
	"fmt"
	"math"

	"giantstream/train/nearest"
	"giantstream/train/numeric"
)

// Bounds of answers that are to differ.
const (
	diversePool = 200 // of the nearest nodes, among which they are chosen
	maxDiverse  = 100 // Offset+K
)

func (w *Wanted) checkDiversity() error {
	if !(w.Diversity >= 0 && w.Diversity <= 1) {
		return badRequest{fmt.Errorf("diversity is %g; it can be from 0 to 1", w.Diversity)}
	}
	if w.Diversity > 0 && w.Offset+w.K > maxDiverse {
		return badRequest{fmt.Errorf("offset and k are %d together; with diversity they can be %d at most",
			w.Offset+w.K, maxDiverse)}
	}
	return nil
}

// diverse chooses n of the nodes nearest to v by their maximal marginal relevance (Carbonell and Goldstein, SIGIR
// 1998): the nearest first, and then each time the node with the most of
//
//	(1-diversity) × cosine with v - diversity × highest cosine with one that is chosen
//
// Among equals it is the one nearer to v. The nodes are those of a pool whose size n does not change, so that the first
// answers stay the same when more are asked for.
func (p *pool) diverse(v []float32, n int, diversity float64) []nearest.Neighbour {
	found := p.nearest(v, diversePool)
	dim := p.index.Dim()
	vectors, highest := make([]float32, len(found)*dim), make([]float64, len(found))
	for i, one := range found {
		p.index.Vector(one.ID, vectors[i*dim:(i+1)*dim])
		numeric.Normalize(vectors[i*dim : (i+1)*dim])
		highest[i] = -1
	}
	taken := make([]bool, len(found))
	chosen := make([]nearest.Neighbour, 0, n)
	for len(chosen) < min(n, len(found)) {
		next, most := 0, math.Inf(-1)
		for i := range found {
			// Before the first is chosen, highest is the same for all, and found begins with the nearest.
			if score := (1-diversity)*float64(found[i].Cosine) - diversity*highest[i]; !taken[i] && score > most {
				next, most = i, score
			}
		}
		chosen, taken[next] = append(chosen, found[next]), true
		last := vectors[next*dim : (next+1)*dim]
		for i := range found {
			highest[i] = max(highest[i], float64(numeric.Dot(vectors[i*dim:(i+1)*dim], last)))
		}
	}
	return chosen
}
