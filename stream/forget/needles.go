package forget

import (
	"slices"
	"strings"
)

// minLine is how long a text or a line of a text must be, in bytes, to be searched for within others. A shorter one
// ("red") is in the texts of others as well: as a line it is not searched for, as a text only where it stands alone.
const minLine = 16

// needles are what is searched for. Equal ids and texts count once.
type needles struct {
	all []needle
	// exact has the needles by their word; start those of two bytes or more by the first two.
	exact map[string][]int
	start map[[2]byte][]int
	// longest is the length of the longest word.
	longest int
}

type needle struct {
	word string
	id   bool
}

func newNeedles(ids, texts []string) *needles {
	n := &needles{exact: map[string][]int{}, start: map[[2]byte][]int{}}
	for _, id := range ids {
		n.add(needle{id, true})
	}
	for _, text := range texts {
		n.add(needle{text, false})
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				n.add(needle{line, false})
			}
		}
	}
	return n
}

func (n *needles) add(w needle) {
	if w.word == "" || slices.ContainsFunc(n.exact[w.word], func(i int) bool { return n.all[i].id == w.id }) {
		return
	}
	i := len(n.all)
	n.all = append(n.all, w)
	n.exact[w.word] = append(n.exact[w.word], i)
	n.longest = max(n.longest, len(w.word))
	if len(w.word) > 1 {
		first := [2]byte{w.word[0], w.word[1]}
		n.start[first] = append(n.start[first], i)
	}
}

// mode says where in a value an id counts.
type mode int

const (
	// whole: the value is the id. That is so where the value is an id, or a text of some node.
	whole mode = iota
	// apart: nothing that may belong to another id is beside it.
	apart
	// tail: nothing that may belong to another id comes after it. A byte that says what follows may stand before it.
	tail
	// anywhere, in bytes of unknown structure.
	anywhere
)

// search calls found for each needle that a value has, once or more often.
func (n *needles) search(value []byte, m mode, found func(needle)) {
	for _, i := range n.exact[string(value)] {
		found(n.all[i])
	}
	for at := range max(0, len(value)-1) {
		for _, i := range n.start[[2]byte{value[at], value[at+1]}] {
			w := n.all[i]
			end := at + len(w.word)
			if end > len(value) || string(value[at:end]) != w.word {
				continue
			}
			ends := end == len(value) || !belongsToID(value[end])
			begins := at == 0 || !belongsToID(value[at-1])
			if m == anywhere || !w.id && len(w.word) >= minLine || ends && (m == tail || m == apart && begins) {
				found(w)
			}
		}
	}
}

// belongsToID reports whether a byte beside an id may make it another one.
func belongsToID(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b == '-' || b == '_' || b >= 0x80
}
