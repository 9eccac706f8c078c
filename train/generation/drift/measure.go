package drift

import (
	"maps"
	"slices"

	"giantstream/featurize/tfidf"
	"giantstream/train/numeric"
)

// Evidence returns what the rows so far say.
func (m *Meter) Evidence() (Evidence, error) {
	if err := m.flush(); err != nil {
		return Evidence{}, err
	}
	e := Evidence{Generation: m.generation.Doc.Generation, Upto: maps.Clone(m.upto),
		UnknownNGrams: m.unknownNGrams(), LabelFit: m.labelFit(), Cosine: m.cosines()}
	if m.undirected {
		e.LinkAUC = m.links.auc(m.negatives())
		e.LinkAUC.AtCut = m.auc.Now
	}
	return e, nil
}

func (m *Meter) unknownNGrams() Measure {
	var n tfidf.NGrams
	for _, one := range m.fresh.ascending {
		n.Total, n.Unknown = n.Total+one.Total, n.Unknown+one.Unknown
	}
	out := Measure{Cases: len(m.fresh.hashes), AtCut: m.ngrams}
	if out.Cases >= MinCases && n.Total > 0 {
		out.Now = finite(n.Share())
	}
	return out
}

// labelFit compares new labels with labels of the cut that count as many instances.
func (m *Meter) labelFit() Measure {
	if m.centres == nil {
		return Measure{}
	}
	var now, atCut float64
	n := 0
	for _, l := range m.labels.sample.ascending {
		fits := m.centres.fit(l)
		if len(fits) == 0 || !m.exists(l) {
			continue
		}
		now, atCut, n = now+fits[len(fits)-1], atCut+m.atCut[len(fits)-1], n+1
	}
	out := mean(now, n)
	if out.Now != nil {
		out.AtCut = finite(atCut / float64(n))
	}
	return out
}

// exists says whether a label is a node, and not the far end of an edge that waits for it.
func (m *Meter) exists(l *label) bool {
	if l.known {
		return true
	}
	_, there := m.fresh.values[hashOf(hashNode, numeric.HashString(l.id))]
	return there
}

func (m *Meter) cosines() Measure {
	var sum float64
	n := 0
	for _, h := range slices.Sorted(maps.Keys(m.published)) {
		if c := m.published[h].cosine; c != nil {
			sum, n = sum+*c, n+1
		}
	}
	out := mean(sum, n)
	out.AtCut = new(1.0)
	return out
}
