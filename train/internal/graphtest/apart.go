package graphtest

import "giantstream/train/internal/vector"

// Apart says by how much the cosines of nodes of one class are above those of nodes of
// two, on average. z holds the nodes' embeddings, of length 1 and dimension dim.
func Apart(classes []string, z []float32, dim int) float64 {
	var sum, pairs [2]float64
	for i, class := range classes {
		for j := range i {
			same := 0
			if classes[j] == class {
				same = 1
			}
			sum[same] += float64(vector.Dot(z[i*dim:(i+1)*dim], z[j*dim:(j+1)*dim]))
			pairs[same]++
		}
	}
	return sum[1]/pairs[1] - sum[0]/pairs[0]
}
