package mutation

import "math"

// Weight is how strong a link is, as an edge record states it. The zero value states none, and means 1.
// Weights order as the numbers do, and the one that is not stated comes before all.
type Weight uint32

// WeightOf returns the weight that a finite number, 0 or more, states.
func WeightOf(f float32) Weight {
	return Weight(math.Float32bits(f)&^(1<<31)) + 1 // -0 is 0
}

// Stated reports whether a record has stated the weight.
func (w Weight) Stated() bool { return w != 0 }

// Float is the weight as a number.
func (w Weight) Float() float32 {
	if w == 0 {
		return 1
	}
	return math.Float32frombits(uint32(w - 1))
}

// Valid reports whether w is a Weight at all: not stated, or finite.
func (w Weight) Valid() bool { return w <= WeightOf(math.MaxFloat32) }
