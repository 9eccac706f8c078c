package nearest

import "math/bits"

const (
	ranks = 32  // of cells, by the number of bits of their place in the order of a query
	steps = 256 // of a difference of scores, from -1 to 1
)

// tails says how far the scores of a cell's vectors lie above that of its centre, as queries have been measured to find
// them: by the rank of the cell and the step of the difference, the share of the vectors that are at least there.
type tails [ranks][steps]float32

// step returns the one of a difference, or the nearest.
func step(above float32) int { return min(max(int((above+1)*(steps/2)), 0), steps-1) }

// rank returns the one of the cell that a query looks into after i others.
func rank(i int) int { return bits.Len(uint(i)) }

// newTails turns counts by step into shares.
func newTails(counts *[ranks][steps]int) *tails {
	t := &tails{}
	for r := range counts {
		sum := 0
		for s := steps - 1; s >= 0; s-- {
			sum += counts[r][s]
			t[r][s] = float32(sum)
		}
		for s := range t[r] {
			t[r][s] /= float32(max(sum, 1))
		}
	}
	return t
}

// exceeds says whether more vectors than some are likely to be better than a score in the cells that are left after a
// number of others, if a share of their vectors may be an answer.
func (x *Index) exceeds(some float32, left []ordered, after int, score, share float32) bool {
	for i, c := range left {
		// The conversion keeps processors from rounding once where others round twice.
		some -= float32(share * float32(x.cells[c.cell].n) * x.tails[rank(after+i)][step(score-c.score)])
		if some < 0 {
			return true
		}
	}
	return false
}
