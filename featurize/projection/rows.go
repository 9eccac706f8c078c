package projection

import "fmt"

// Features returns the features that are mapped to something other than zero, ascending.
func (p *Projection) Features() []int32 {
	var features []int32
	for j, s := range p.slot {
		if s >= 0 {
			features = append(features, int32(j))
		}
	}
	return features
}

// Row returns what a feature is mapped to, Dim numbers that are not to be changed; nil if that is zero.
func (p *Projection) Row(feature int32) []float32 {
	if int(feature) >= len(p.slot) || p.slot[feature] < 0 {
		return nil
	}
	at := int(p.slot[feature]) * p.stride
	return p.matrix[at : at+p.dim]
}

// WithRows returns a projection that maps the features of p to other rows: a row of Dim for each of Features.
func (p *Projection) WithRows(rows []float32) (*Projection, error) {
	if n := len(p.Features()); len(rows) != n*p.dim {
		return nil, fmt.Errorf("projection: %d numbers are not %d rows of %d", len(rows), n, p.dim)
	}
	q := *p
	q.matrix, q.stride = rows, p.dim
	return &q, nil
}
