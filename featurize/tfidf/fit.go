package tfidf

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"

	"giantstream/internal/parallel"
)

// ErrNoText is returned by Fit when no feature is left to keep.
var ErrNoText = errors.New("tfidf: no features: the texts are empty, too few or all alike")

// Fitter counts document frequencies. It is not safe for concurrent use;
// AddAll uses several goroutines by itself.
type Fitter struct {
	opt      Options
	docs     int
	counters []*counter // one per worker
}

// NewFitter returns a Fitter, or an error that names every fault of opt.
func NewFitter(opt Options) (*Fitter, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	return &Fitter{opt: opt}, nil
}

// AddAll counts documents on several goroutines (workers ≤ 0: one per CPU);
// with a memory budget on one, as what is forgotten depends on the order.
func (f *Fitter) AddAll(texts []string, workers int) {
	workers = parallel.Workers(workers)
	if f.opt.MemoryBudget > 0 {
		workers = 1
	}
	f.grow(workers)
	parallel.ForEach(len(texts), 256, workers, func(worker, _, lo, hi int) {
		for _, text := range texts[lo:hi] {
			f.counters[worker].count(text)
		}
	})
	f.docs += len(texts)
}

func (f *Fitter) grow(workers int) {
	for len(f.counters) < workers {
		f.counters = append(f.counters, newCounter(f.opt))
	}
}

// feature is a candidate: an n-gram and its document frequency.
type feature struct {
	key uint64
	df  int32
}

// Fit chooses the features. The Fitter may take more texts and fit again.
func (f *Fitter) Fit() (*Model, error) {
	words, ids := f.mergeWords()
	var parts [numParts][]feature
	for p := range parts {
		parts[p] = f.choose(Part(p), ids)
	}
	return newModel(f.opt.Profile, f.docs, words, parts)
}

// mergeWords puts the words of all counters in byte order, and returns for
// each counter the new ids of its words.
func (f *Fitter) mergeWords() (*wordTable, [][]int32) {
	type word struct {
		text        []byte
		counter, id int32
	}
	var all []word
	ids := make([][]int32, len(f.counters))
	size := 0
	for k, c := range f.counters {
		ids[k] = make([]int32, c.words.len())
		size += c.words.bytes()
		for id := range ids[k] {
			all = append(all, word{c.words.word(id), int32(k), int32(id)})
		}
	}
	slices.SortFunc(all, func(a, b word) int { return bytes.Compare(a.text, b.text) })
	merged := &wordTable{arena: make([]byte, 0, size), start: []int64{0}}
	for i, w := range all {
		if i == 0 || !bytes.Equal(w.text, all[i-1].text) {
			merged.arena = append(merged.arena, w.text...)
			merged.start = append(merged.start, int64(len(merged.arena)))
		}
		ids[w.counter][w.id] = int32(merged.len() - 1)
	}
	return merged, ids
}

// choose returns the features of a part in the order of their ids.
func (f *Fitter) choose(p Part, ids [][]int32) []feature {
	limits := f.opt.Parts[p]
	if limits.MaxFeatures == 0 {
		return nil
	}
	all := f.candidates(p, ids)
	if len(f.counters) > 1 {
		all = addUp(all)
	}
	within := limits.documents(f.docs)
	return mostFrequent(slices.DeleteFunc(all, func(ft feature) bool { return !within(int(ft.df)) }),
		limits.MaxFeatures, func(a, b feature) int {
			return cmp.Or(cmp.Compare(a.df, b.df), cmp.Compare(a.key, b.key))
		})
}

// documents returns a function that reports whether a part keeps an n-gram that df of docs documents hold.
func (l Limits) documents(docs int) func(df int) bool {
	// float32, as PECOS computes it.
	most := int(math.Round(float64(float32(l.MaxDF) * float32(docs))))
	least := max(1, l.MinDF)
	return func(df int) bool { return df >= least && df <= most }
}

// mostFrequent sorts all and returns the last n.
func mostFrequent[T any](all []T, n int, compare func(a, b T) int) []T {
	slices.SortFunc(all, compare)
	return all[max(0, len(all)-n):]
}

// addUp adds up the frequencies of equal n-grams, in place.
func addUp(all []feature) []feature {
	slices.SortFunc(all, func(a, b feature) int { return cmp.Compare(a.key, b.key) })
	sums := all[:0]
	for _, ft := range all {
		if last := len(sums) - 1; last >= 0 && sums[last].key == ft.key {
			sums[last].df += ft.df
		} else {
			sums = append(sums, ft)
		}
	}
	return sums
}

// candidates returns the counts of a part of all counters under common keys.
func (f *Fitter) candidates(p Part, ids [][]int32) []feature {
	n := 0
	for _, c := range f.counters {
		n += len(c.parts[p].df)
	}
	all := make([]feature, 0, n)
	for k, c := range f.counters {
		for id, df := range c.parts[p].df {
			var key uint64
			switch p {
			case Word1:
				key = uint64(ids[k][id])
			case Word2:
				key = c.pairs.keys[id]
				key = pairKey(ids[k][key>>32], ids[k][uint32(key)])
			default:
				key = c.chars.keys[id]
			}
			all = append(all, feature{key, df})
		}
	}
	return all
}
