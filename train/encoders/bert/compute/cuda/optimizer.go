//go:build cuda

package cuda

import (
	"math"

	"gorgonia.org/cu"

	"giantstream/train/encoders/bert/compute"
)

// Zero implements compute.Optimizer.
func (be *Backend) Zero(x compute.Buffer) {
	be.device.do(func(d *device) error {
		if x.Len() == 0 {
			return nil
		}
		return d.failed("clearing", cu.MemsetD32Async(devicePtr(x, 0), 0, int64(x.Len()), d.stream))
	})
}

// squaresOf is how many numbers a block of squares adds up.
const squaresOf = 32 * elementThreads

// Squares implements compute.Optimizer. Sums are float64.
func (be *Backend) Squares(dst compute.Buffer, i int, x compute.Buffer) {
	be.device.do(func(d *device) error {
		n := x.Len()
		blocks := ceil(n, squaresOf)
		sums, err := d.scratch(2 * blocks)
		if err != nil {
			return err
		}
		if err := d.launch("squares", grid{blocks, 1}, elementThreads, sums, devicePtr(x, 0), uint64(n)); err != nil {
			return err
		}
		return d.launch("squares_total", grid{1, 1}, elementThreads, devicePtr(dst, 0), uint64(i), sums, blocks)
	})
}

// AdamW implements compute.Optimizer.
func (be *Backend) AdamW(w, mean, square, g, squares compute.Buffer, s *compute.Step) {
	t := float64(s.Number)
	decay, rate := float32(1-s.Rate*s.Decay), float32(s.Rate/(1-math.Pow(s.Beta1, t)))
	root := float32(1 / math.Sqrt(1-math.Pow(s.Beta2, t)))
	beta1, beta2, epsilon, clip := float32(1-s.Beta1), float32(1-s.Beta2), float32(s.Epsilon), s.Clip
	be.device.do(func(d *device) error {
		n := w.Len()
		return d.launch("adamw", grid{ceil(n, elementThreads), 1}, elementThreads, devicePtr(w, 0),
			devicePtr(mean, 0), devicePtr(square, 0),
			devicePtr(g, 0), devicePtr(squares, 0), squares.Len(), uint64(n), clip, decay, rate, root, epsilon, beta1, beta2)
	})
}
