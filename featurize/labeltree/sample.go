package labeltree

import "math/rand/v2"

const defaultSample = 10_000

func (o Options) sample() int {
	if o.Sample == 0 {
		return defaultSample
	}
	if o.Sample < 0 {
		return 0
	}
	return max(2, o.Sample)
}

// splitBySample finds the direction of the cut on a sample of the members, and
// then cuts all of them along it: the parts have their exact sizes, and a cluster of
// any size is read once.
func (s *splitter) splitBySample(members []int32, n int, r *rand.Rand, workers int) {
	chosen := sample(members, s.sample, r)
	s.direct(chosen, max(1, n*len(chosen)/len(members)), r, workers)
	s.resize(len(members))
	s.x.dots(members, s.total, s.l, workers)
	for k, score := range s.l {
		s.keys[k] = key(score, k)
	}
	s.cut(n)
}

// direct leaves in s.total the direction in which a sample is cut, with n of its members on the left.
func (s *splitter) direct(chosen []int32, n int, r *rand.Rand, workers int) {
	s.converge(chosen, n, r, workers)
	scaleL, scaleR := s.score(chosen, workers)
	// c = R/‖R‖ − L/‖L‖ = T/‖R‖ − L·(1/‖L‖ + 1/‖R‖). Members of the sample have
	// no say in what they have alone (lone): the others have none either.
	both := scaleL + scaleR
	for j, l := range s.left {
		s.total[j] = float32(float64(float64(s.total[j])*scaleR) - float64(float64(l)*both))
	}
}

// sample draws n of the members without repetition; it keeps their order
// (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S).
func sample(members []int32, n int, r *rand.Rand) []int32 {
	chosen := make([]int32, 0, n)
	for k, m := range members {
		if r.IntN(len(members)-k) < n-len(chosen) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}
