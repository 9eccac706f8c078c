package preview

import (
	"math"

	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// Vector is what the first node records say of a mapped vector.
type Vector struct {
	Name      string `json:"name"`
	Length    int    `json:"length"`
	Precision string `json:"precision"`
	// Records have it.
	Records int64 `json:"records"`
	// The Euclidean norms are in this range.
	MinNorm float64 `json:"min_norm"`
	MaxNorm float64 `json:"max_norm"`
}

// newVectors returns what is to be counted of mapped vectors.
func newVectors(mapped []decode.Vector) (all []Vector) {
	for _, v := range mapped {
		all = append(all, Vector{Name: v.Name, Length: v.Length, Precision: v.Precision.String()})
	}
	return all
}

// addVectors takes the vectors of a record.
func (s *Input) addVectors(stated []mutation.Vector) {
	for i := range stated {
		square := 0.0
		for _, x := range stated[i].Numbers() {
			square += float64(x) * float64(x)
		}
		norm := math.Sqrt(square)
		for k := range s.Vectors {
			if v := &s.Vectors[k]; v.Name == stated[i].Name {
				if v.Records++; v.Records == 1 {
					v.MinNorm = norm
				}
				v.MinNorm, v.MaxNorm = min(v.MinNorm, norm), max(v.MaxNorm, norm)
			}
		}
	}
}
