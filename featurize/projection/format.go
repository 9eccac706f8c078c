package projection

import (
	"io"
	"math"

	"giantstream/internal/artifact"
)

// Format: docs/format/projection.md.
const (
	magic   = "GSPROJ\x00\x00"
	version = 1

	kindFitted = 0
	kindRandom = 1
)

// Write writes the projection as an artifact.
func (p *Projection) Write(w io.Writer) error {
	a := artifact.NewWriter(w, magic, version)
	kind := uint32(kindFitted)
	if p.slot == nil {
		kind = kindRandom
	}
	a.U32(kind)
	a.U64(uint64(p.cols))
	a.U64(uint64(p.dim))
	if kind == kindRandom {
		a.U64(p.seed)
		return a.Close()
	}
	features := make([]int32, len(p.matrix)/p.stride)
	for j, s := range p.slot {
		if s >= 0 {
			features[s] = int32(j)
		}
	}
	a.Int32s(features)
	for _, s := range p.singular {
		a.F64(s)
	}
	matrix := p.matrix
	if p.stride != p.dim {
		matrix = make([]float32, 0, len(features)*p.dim)
		for s := range features {
			matrix = append(matrix, p.matrix[s*p.stride:][:p.dim]...)
		}
	}
	a.Float32s(matrix)
	return a.Close()
}

// maxCols bounds the features of a projection that is read: a vector of this
// many int32 is allocated.
const maxCols = 1 << 26

// Read reads a projection artifact. The error is artifact.ErrCorrupt or
// artifact.ErrUnknown when the bytes are to blame.
func Read(r io.Reader) (*Projection, error) {
	a, err := artifact.NewReader(r, magic, version)
	if err != nil {
		return nil, err
	}
	kind := a.U32()
	p := &Projection{cols: a.Int("number of features", 1, maxCols), dim: a.Int("number of dimensions", 1, maxDim)}
	switch kind {
	case kindRandom:
		p.seed = a.U64()
		if err := a.Close(); err != nil {
			return nil, err
		}
		return p, nil
	case kindFitted:
	default:
		a.Fail("unknown kind %d", kind)
	}
	p.stride = p.dim
	features := a.Int32s("features", p.cols)
	for range p.dim {
		value := a.F64()
		if math.IsNaN(value) || math.IsInf(value, 0) {
			a.Fail("singular value %d is %v", len(p.singular), value)
		}
		p.singular = append(p.singular, value)
	}
	p.matrix = a.Float32s("matrix", math.MaxInt/8)
	if len(p.matrix) != len(features)*p.dim {
		a.Fail("%d coefficients for %d features in %d dimensions", len(p.matrix), len(features), p.dim)
	}
	last := int32(-1)
	for _, j := range features {
		if j <= last || int(j) >= p.cols {
			a.Fail("feature %d after %d, of %d", j, last, p.cols)
			break
		}
		last = j
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	p.slot = make([]int32, p.cols)
	for j := range p.slot {
		p.slot[j] = -1
	}
	for s, j := range features {
		p.slot[j] = int32(s)
	}
	return p, nil
}
