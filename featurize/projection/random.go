package projection

import (
	"fmt"
	"math"

	"giantstream/featurize/sparse"
)

// maxDim bounds the dimensions of any projection.
const maxDim = 1 << 14

// entries is how many dimensions of a random projection a feature touches:
// one in each of that many equal blocks of the dimensions.
const entries = 16

// Random returns a sparse random projection (Kane and Nelson, "Sparser
// Johnson-Lindenstrauss transforms", 2014, block construction): each feature
// has an entry ±1/√s at a random place in each of s blocks, so lengths and
// dot products are right on average with a variance of about 2/dim.
func Random(cols, dim int, seed uint64) (*Projection, error) {
	if cols < 1 || cols > maxCols || dim < 1 || dim > maxDim {
		return nil, fmt.Errorf("projection: %d features to %d dimensions, want 1 to %d and 1 to %d", cols, dim,
			maxCols, maxDim)
	}
	return &Projection{cols: cols, dim: dim, seed: seed}, nil
}

func (p *Projection) applyRandom(v sparse.Vector, out []float32) {
	s := min(entries, p.dim)
	scale := float32(1 / math.Sqrt(float64(s)))
	for k, j := range v.Index {
		if int(j) >= p.cols {
			continue
		}
		state := p.seed + uint64(j)*0x9e3779b97f4a7c15
		for b := range s {
			lo, hi := b*p.dim/s, (b+1)*p.dim/s
			state += 0x9e3779b97f4a7c15
			h := splitmix(state)
			at := lo + int((h>>32)*uint64(hi-lo)>>32)
			if h&1 == 0 {
				out[at] += v.Value[k] * scale
			} else {
				out[at] -= v.Value[k] * scale
			}
		}
	}
}

// splitmix is the output function of SplitMix64 (Steele, Lea and Flood 2014).
func splitmix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
