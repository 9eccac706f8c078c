package lanes

import "fmt"

// Most is the largest number of lanes.
const Most = 64

// Width is the number of lanes to use for n ≤ Most classifiers.
func Width(n int) int {
	for w := 8; w < Most; w *= 2 {
		if n <= w {
			return w
		}
	}
	return Most
}

func check(n int) {
	if n != 8 && n != 16 && n != 32 && n != 64 {
		panic(fmt.Sprintf("lanes: %d lanes", n))
	}
}

// Project sets out to the row's product with each lane: Σ_j value[j]·w[index[j]].
// index must lie within w, which has len(out) lanes.
func Project(out, w []float32, index []int32, value []float32) {
	check(len(out))
	if len(index) == 0 {
		clear(out)
		return
	}
	value = value[:len(index)]
	if accelerated() {
		project(out, w, index, value)
		return
	}
	plainProject(out, w, index, value)
}

func plainProject(out, w []float32, index []int32, value []float32) {
	n := len(out)
	clear(out)
	for j, c := range index {
		v, row := value[j], w[int(c)*n:int(c)*n+n]
		for k, x := range row {
			out[k] += v * x
		}
	}
}

// Add adds the row times d to the lanes: w[index[j]] += value[j]·d, of len(d)
// lanes. The columns of a row are distinct and must lie within w.
func Add(w, d []float32, index []int32, value []float32) {
	check(len(d))
	if len(index) == 0 {
		return
	}
	value = value[:len(index)]
	if accelerated() {
		add(w, d, index, value)
		return
	}
	plainAdd(w, d, index, value)
}

func plainAdd(w, d []float32, index []int32, value []float32) {
	n := len(d)
	for j, c := range index {
		v, row := value[j], w[int(c)*n:int(c)*n+n]
		for k, x := range d {
			row[k] += v * x
		}
	}
}

// Step is one step of dual coordinate descent for the L2-loss SVM in every lane, all
// for the same instance. With y = sign (1 or −1, or 0 for a lane that is to rest), β = yα,
// m the margin, d the diagonal that m leaves out and h the whole
// curvature, it sets
//
//	next = y·max(0, y·(β − (m + d·β − y)/h)),   delta = next − β
//
// and returns the largest |delta|.
func Step(next, delta, margin, sign, beta []float32, d, h float32) (most float32) {
	n := len(next)
	check(n)
	delta, margin, sign, beta = delta[:n], margin[:n], sign[:n], beta[:n]
	if accelerated() {
		return step(&next[0], &delta[0], &margin[0], &sign[0], &beta[0], n, d, 1/h)
	}
	return plainStep(next, delta, margin, sign, beta, d, 1/h)
}

func plainStep(next, delta, margin, sign, beta []float32, d, inverse float32) (most float32) {
	for k, y := range sign {
		b := beta[k]
		to := y * max(0, y*(b-(margin[k]+d*b-y)*inverse))
		next[k], delta[k] = to, to-b
		most = max(most, to-b, b-to)
	}
	return most
}

// AtLeast returns the set of lanes where |x| is at least least, as bits: the first lane is the
// lowest.
func AtLeast(x []float32, least float32) (which uint64) {
	check(len(x))
	if accelerated() {
		return atLeast(&x[0], len(x), least)
	}
	return plainAtLeast(x, least)
}

func plainAtLeast(x []float32, least float32) (which uint64) {
	for k, v := range x {
		if v >= least || v <= -least {
			which |= 1 << k
		}
	}
	return which
}
