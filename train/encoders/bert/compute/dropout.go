package compute

import (
	"math"

	"giantstream/train/numeric"
)

// Dropout sets numbers to zero at random, in training, and scales the others
// up so that the expected value stays (Srivastava et al., "Dropout", 2014).
//
// What is dropped depends on the text's seed (Batch.Seeds), on Site and on the number's place
// within the text, not on the batch or the order in which a backend computes. So a backward pass,
// and a forward pass that is run again, drop the same numbers without storing them.
type Dropout struct {
	// Rate is the share that is dropped, to a precision of 2⁻¹⁶; 0 drops nothing.
	Rate float64
	// Site distinguishes the places in a network that drop something.
	Site uint64
}

// DroppedFor returns which numbers of a text with the given seed are dropped.
func (d Dropout) DroppedFor(seed uint64) Dropped {
	least, scale := d.Draw()
	return Dropped{source: numeric.NewRand(seed, d.Site), least: least, scale: scale}
}

// Draw returns the rate as DroppedFor uses it, for backends that draw on their own: number i of a text takes
// bits 16·(i mod 4) and up of value i/4 of numeric.NewRand(seed, d.Site). If these 16 bits are below
// least, it is dropped, otherwise multiplied by scale.
func (d Dropout) Draw() (least uint64, scale float32) {
	least = min(uint64(math.Round(d.Rate*(1<<drawBits))), 1<<drawBits-1)
	return least, float32((1 << drawBits) / float64((1<<drawBits)-least))
}

// Four numbers share 64 random bits.
const (
	drawBits = 16
	draws    = 64 / drawBits
)

// Dropped says which numbers of a text are dropped at a site.
type Dropped struct {
	source numeric.Rand
	least  uint64 // draws below it drop their number
	scale  float32
}

// Keeps reports whether number i of the text stays.
func (d Dropped) Keeps(i int) bool {
	d.source.Skip(uint64(i / draws))
	return d.source.Uint64()>>(i%draws*drawBits)&(1<<drawBits-1) >= d.least
}

// Apply writes numbers first, first+1, … of the text to dst: those of x scaled,
// and zeros. dst may be x.
func (d Dropped) Apply(dst, x []float32, first int) {
	d.source.Skip(uint64(first / draws))
	// The carry of a subtraction replaces a branch that the processor would often mispredict.
	factor := [2]float32{0, d.scale}
	carry := 1<<drawBits - d.least
	dst = dst[:len(x)]
	for i, at := 0, first%draws; i < len(x); at = 0 {
		bits := d.source.Uint64() >> (at * drawBits)
		for end := min(i+draws-at, len(x)); i < end; i++ {
			dst[i] = x[i] * factor[(bits&(1<<drawBits-1)+carry)>>drawBits&1]
			bits >>= drawBits
		}
	}
}
