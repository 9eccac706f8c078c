package pifa

// Grow adds labels without instances until there are n.
func (s *Sketch) Grow(n int) {
	if more := n - len(s.count); more > 0 {
		s.count = append(s.count, make([]int32, more)...)
		s.sums = append(s.sums, make([]float32, more*s.dim)...)
	}
}
