package report

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"giantstream/cmd/internal/console"
	"giantstream/train/generation"
)

// quality says what the input is like: how many nodes have which field, how long texts are, and how many links nodes
// have.
type quality struct {
	Nodes, Texts, Classes, Linked int
	Lengths, Degrees              histogram
	kinds                         map[string]int // of links that have one
}

// note counts a live node of the cut.
func (q *quality) note(r *generation.Row) {
	q.Nodes++
	if strings.TrimSpace(r.Text) != "" {
		q.Texts++
	}
	if r.Class != "" {
		q.Classes++
	}
	if len(r.Labels) > 0 {
		q.Linked++
	}
	q.Lengths.add(utf8.RuneCountInString(r.Text))
	q.Degrees.add(len(r.Labels))
	for _, kind := range r.LinkKinds {
		if kind == "" {
			continue
		}
		if q.kinds == nil {
			q.kinds = map[string]int{}
		}
		q.kinds[kind]++
	}
}

// kindCount is a kind of links, and how many rows' links have it.
type kindCount struct {
	Name  string
	Links int
}

// maxKinds bounds the kinds that are shown.
const maxKinds = 20

// Kinds are the kinds of links, most frequent first.
func (q *quality) Kinds() (out []kindCount) {
	for kind, n := range q.kinds {
		out = append(out, kindCount{kind, n})
	}
	slices.SortFunc(out, func(a, b kindCount) int {
		return cmp.Or(cmp.Compare(b.Links, a.Links), strings.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxKinds)]
}

// Percent is a part of the nodes. Only all of them are 100 %, and only none are 0 %.
func (q *quality) Percent(part int) string {
	switch p := 100 * float64(part) / float64(max(1, q.Nodes)); {
	case part == q.Nodes, part == 0:
		return fmt.Sprintf("%.0f %%", p)
	default:
		return fmt.Sprintf("%.1f %%", min(99.9, max(0.1, p)))
	}
}

// histogram counts numbers in buckets of powers of two: 0, 1, 2–3, 4–7, and so on.
type histogram struct{ counts []int }

func (h *histogram) add(n int) {
	b := bits.Len(uint(max(0, n)))
	for len(h.counts) <= b {
		h.counts = append(h.counts, 0)
	}
	h.counts[b]++
}

// bar is a bucket of a histogram.
type bar struct {
	Name  string
	Nodes int
	// Width is a share of the largest bucket, in percent.
	Width string
}

// Bars are the buckets from the first to the last that has a node.
func (h *histogram) Bars() (out []bar) {
	most := 1
	for _, n := range h.counts {
		most = max(most, n)
	}
	for b, n := range h.counts {
		if len(out) == 0 && n == 0 {
			continue
		}
		name := console.Count(b) // 0 and 1
		if b > 1 {
			name = fmt.Sprintf("%s–%s", console.Count(1<<(b-1)), console.Count(1<<b-1))
		}
		out = append(out, bar{name, n, fmt.Sprintf("%.1f", 100*float64(n)/float64(most))})
	}
	return out
}
