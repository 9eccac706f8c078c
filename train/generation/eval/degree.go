package eval

import "giantstream/featurize/sparse"

// DegreeBuckets are the names of the buckets of degrees that figures are split by.
var DegreeBuckets = []string{"0", "1-2", "3-10", "11+"}

// MinCases is how many hidden edges, or nodes with a class, a bucket must have for a figure. The
// standard error of a share measured on fewer is about a tenth.
const MinCases = 30

// ByDegree returns the bucket of each node, as an index of DegreeBuckets: of the number of its
// neighbours, in whichever direction.
func ByDegree(neighbours *sparse.Matrix) []uint8 {
	out := make([]uint8, neighbours.Rows)
	for i, d := range degrees(neighbours) {
		out[i] = Bucket(int(d))
	}
	return out
}

// Bucket returns the bucket of a node by its number of neighbours, as an index of DegreeBuckets.
func Bucket(degree int) uint8 {
	switch {
	case degree == 0:
		return 0
	case degree <= 2:
		return 1
	case degree <= 10:
		return 2
	}
	return 3
}

// degrees counts each node's neighbours, in whichever direction, each once.
func degrees(neighbours *sparse.Matrix) []int32 {
	out := make([]int32, neighbours.Rows)
	for i := range neighbours.Rows {
		for _, j := range neighbours.Row(i).Index {
			out[i]++
			if int(j) != i && !linked(neighbours, int(j), int32(i)) {
				out[j]++
			}
		}
	}
	return out
}

// Isolated returns, ascending, the nodes without any edge, known or hidden, and the others.
func Isolated(known *sparse.Matrix, hidden []Edge) (isolated, others []int32) {
	d := degrees(known)
	for _, e := range hidden {
		d[e.Src]++
		d[e.Dst]++
	}
	for i, k := range d {
		if k == 0 {
			isolated = append(isolated, int32(i))
		} else {
			others = append(others, int32(i))
		}
	}
	return isolated, others
}
