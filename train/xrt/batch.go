package xrt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/featurize/sparse"
	"giantstream/train/xmc"
)

// ErrTargets: an example's targets do not belong to the tree.
var ErrTargets = errors.New("targets do not fit the label tree; training set and tree must be of one generation")

// reader takes examples from a source, from any place on.
type reader struct {
	src  Source
	next func() (Example, error, bool)
	stop func()
}

// seek goes to the example after the first skip of an epoch.
func (r *reader) seek(ctx context.Context, epoch int, skip int64) {
	r.close()
	r.next, r.stop = iter.Pull2(r.src.Epoch(ctx, epoch, skip))
}

func (r *reader) close() {
	if r.stop != nil {
		r.stop()
	}
	r.next, r.stop = nil, nil
}

// read appends at most limit examples of this epoch; none means it has ended.
func (r *reader) read(dst []Example, limit int) ([]Example, error) {
	for len(dst) < limit {
		e, err, ok := r.next()
		if !ok {
			break
		}
		if err != nil {
			return dst, fmt.Errorf("xrt: training set: %w", err)
		}
		dst = append(dst, e)
	}
	return dst, nil
}

// labelsOf returns an example's targets at the levels of the problem, which
// are the last ones of the tree, and the number of its labels.
func labelsOf(p *xmc.Problem, e Example, levels int) ([]sparse.Vector, float64, error) {
	if len(e.Targets) != levels || len(e.Counts) != levels {
		return nil, 0, fmt.Errorf("xrt: %d levels of targets and %d of counts, the tree has %d: %w", len(e.Targets), len(e.Counts), levels, ErrTargets)
	}
	rows := make([]sparse.Vector, len(p.Levels))
	labels := 0.0
	first := levels - len(p.Levels)
	for t := range rows {
		clusters, counts := e.Targets[first+t], e.Counts[first+t]
		if len(counts) != len(clusters) {
			return nil, 0, fmt.Errorf("xrt: %d targets with %d counts at level %d: %w", len(clusters), len(counts), first+t, ErrTargets)
		}
		rows[t] = sparse.Vector{Index: clusters, Value: make([]float32, len(counts))}
		last := int32(-1)
		for i, c := range clusters {
			if c <= last || int(c) >= p.Levels[t].Clusters || counts[i] < 1 {
				return nil, 0, fmt.Errorf("xrt: cluster %d with %d labels at level %d of %d clusters: %w", c, counts[i], first+t, p.Levels[t].Clusters, ErrTargets)
			}
			last = c
			rows[t].Value[i] = float32(counts[i])
			if t == 0 {
				labels += float64(counts[i])
			}
		}
	}
	return rows, labels, nil
}
