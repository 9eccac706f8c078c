package xmc

import "fmt"

// Loss is what the scores of an instance's candidates cost.
type Loss uint8

// The losses. z is the score of a candidate, y is +1 if it holds a label of
// the instance and −1 if not.
const (
	// Softmax is the cross-entropy between the candidates' softmax and the
	// shares of the instance's labels that they hold.
	Softmax Loss = iota
	// SquaredHinge is the mean of max(0, 1 − y·z)² over the candidates: the
	// loss of the paper. PECOS divides by the width of the padded batch
	// instead, so that an instance with few candidates weighs less.
	SquaredHinge
	// CrossEntropy is the mean of ln(1 + exp(−y·z)) over the candidates.
	CrossEntropy
)

var lossNames = [...]string{"softmax", "squared hinge", "cross-entropy"}

func (l Loss) String() string {
	if int(l) < len(lossNames) {
		return lossNames[l]
	}
	return fmt.Sprintf("loss %d", uint8(l))
}

// Negatives says which clusters without a label of the instance are scored,
// at a level that is not scored whole.
type Negatives uint8

// The kinds of negatives.
const (
	Both Negatives = iota // both of the following
	TFN                   // the positives' siblings
	MAN                   // the children of the best-scored clusters above
)

// Options of heads in training. The zero value of each field stands for its
// default.
type Options struct {
	Loss      Loss
	Negatives Negatives
	// Scale multiplies ⟨w, z⟩; for Softmax it is the inverse temperature.
	// 0 means DefaultScale for Softmax, 1 for the others.
	Scale float32
	// Matched is how many clusters pass their children on as MAN; 0 means
	// 10. The paper has 20.
	Matched int
	// CountWeights weighs an instance's positives by the labels they hold (1 on average). Softmax
	// ignores it, since its targets contain the counts.
	CountWeights bool
	// Clip bounds the length of a level's gradient in a step; 0 means none.
	Clip float64
	// Decay is the decoupled weight decay (AdamW) of levels scored whole,
	// relative to the rate. Rows of other levels take part now and then only
	// and are not decayed.
	Decay float64
}

// DefaultScale is the inverse temperature for cosines.
const DefaultScale = 7

func (o Options) withDefaults() Options {
	if o.Scale == 0 {
		o.Scale = 1
		if o.Loss == Softmax {
			o.Scale = DefaultScale
		}
	}
	if o.Matched == 0 {
		o.Matched = defaultMatched
	}
	return o
}
