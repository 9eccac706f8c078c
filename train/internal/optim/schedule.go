package optim

// Fraction is the share of the highest learning rate for step s (from 0) of
// steps: linearly up over the warm-up, a share of the steps, and linearly down to
// zero after it.
func Fraction(s, steps int64, warmup float64) float64 {
	warm := int64(warmup * float64(steps))
	if s < warm {
		return float64(s+1) / float64(warm+1)
	}
	return float64(steps-s) / float64(steps-warm)
}
