package staged

import (
	"context"
	"errors"
	"slices"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// sample is the part of the graph that the encoder is trained and evaluated on: all of it, if it has no more than
// Plan.Sample nodes. Else a run of nodes in the order of their hashes, with all their links, and the nodes at the far
// ends: these are labels, but no instances. Close it after use.
type sample struct {
	fit.Inputs
	positions []int32 // ascending
	whole     bool
	known     *train.Graph
	hidden    []eval.Edge
}

func (s *sample) close() error {
	return errors.Join(s.Texts.Close(), s.Features.Close(), s.Projected.Close())
}

// sample reads a sample. labels and tree are read for training alone.
func (t *task) sample(ctx context.Context, training bool) (_ *sample, err error) {
	x, err := t.numbered(ctx)
	if err != nil {
		return nil, err
	}
	r := t.resources()
	s := &sample{whole: x.nodes() <= t.plan.Sample}
	s.Texts = fit.NewTexts(r)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	instances, err := t.choose(ctx, x, s)
	if err != nil {
		return nil, err
	}
	if err := t.readSample(ctx, x, s, instances); err != nil {
		return nil, err
	}
	s.known, s.hidden = fit.HideEdges(s.Graph, t.doc.Settings)
	s.Graph = s.known
	if s.Vectorizer, err = t.loadVectorizer(ctx); err != nil {
		return nil, err
	}
	if s.Features, err = fit.Vectorize(ctx, s.Vectorizer, s.Texts, r); err != nil {
		return nil, err
	}
	if s.Projection, err = t.loadProjection(ctx); err != nil {
		return nil, err
	}
	if s.Dim, err = t.dim(ctx); err != nil {
		return nil, err
	}
	if s.Projected, err = fit.Project(ctx, s.Projection, s.Features, r); err != nil {
		return nil, err
	}
	if training {
		err = t.readTargets(ctx, x, s)
	}
	return s, err
}

// run is a run of positions, from begin on and around.
type positionRun struct{ begin, length, nodes int }

func (r positionRun) has(position int) bool { return (position-r.begin+r.nodes)%r.nodes < r.length }

// choose sets s.positions, and returns the run of nodes that are instances.
func (t *task) choose(ctx context.Context, x index, s *sample) (positionRun, error) {
	all := positionRun{0, x.nodes(), x.nodes()}
	if s.whole {
		s.positions = make([]int32, x.nodes())
		for i := range s.positions {
			s.positions[i] = int32(i)
		}
		return all, nil
	}
	taken := make(map[int32]struct{}, t.plan.Sample)
	all.begin, all.length = t.begin(x, t.doc.Settings.Seed), 0
	first := x.of(all.begin)
	for k := 0; k <= t.plan.Partitions; k++ {
		p := (first + k) % t.plan.Partitions
		err := t.links(ctx, p, func(i int, to []int32, _ []bool) error {
			at := x.Base[p] + i
			if k == 0 && at < all.begin || k == t.plan.Partitions && at >= all.begin {
				return nil
			}
			if len(taken) >= t.plan.Sample {
				return errStop
			}
			all.length++
			taken[int32(at)] = struct{}{}
			if len(to) <= t.doc.Settings.MaxDegree {
				for _, j := range to {
					if j >= 0 {
						taken[j] = struct{}{}
					}
				}
			}
			return nil
		})
		if errors.Is(err, errStop) {
			break
		}
		if err != nil {
			return all, err
		}
	}
	for i := range taken {
		s.positions = append(s.positions, i)
	}
	slices.Sort(s.positions)
	return all, nil
}

// links calls visit with the neighbours of a partition's nodes in order.
func (b *build) links(ctx context.Context, p int, visit func(i int, to []int32, hidden []bool) error) error {
	return b.eachBlock(ctx, Link, "links", p, func(d *decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			to, hidden := neighbours(d)
			if d.err != nil {
				return d.err
			}
			if err := visit(i, to, hidden); err != nil {
				return err
			}
		}
		return nil
	})
}

// within calls visit with each position of the sample that is in a partition, and its number in the sample.
func (s *sample) within(x index, p int, visit func(i, k int) error) error {
	k, _ := slices.BinarySearch(s.positions, int32(x.Base[p]))
	for ; k < len(s.positions) && int(s.positions[k]) < x.Base[p+1]; k++ {
		if err := visit(int(s.positions[k])-x.Base[p], k); err != nil {
			return err
		}
	}
	return nil
}

// readSample reads ids, classes, texts and links of the sample.
func (t *task) readSample(ctx context.Context, x index, s *sample, instances positionRun) error {
	n := len(s.positions)
	s.Graph = &train.Graph{IDs: make([]string, 0, n), Classes: make([]string, 0, n),
		Neighbours: &sparse.Matrix{Cols: n, Start: []int64{0}}}
	at := make(map[int32]int32, n)
	for k, i := range s.positions {
		at[i] = int32(k)
	}
	classes := map[string]string{}
	wanted := 0
	want := func(position int) bool {
		return wanted < n && int(s.positions[wanted]) == position
	}
	for p := range t.plan.Partitions {
		if wanted >= n || int(s.positions[wanted]) >= x.Base[p+1] {
			continue // none of this partition
		}
		begin := wanted
		if err := t.about(ctx, p, func(i int, a about) error {
			if want(x.Base[p] + i) {
				class, ok := classes[string(a.class)]
				switch {
				case !instances.has(x.Base[p] + i): // its degree is not known here, so that it is not asked about
					class = ""
				case !ok:
					class = string(a.class)
					classes[class] = class
				}
				s.Graph.IDs, s.Graph.Classes = append(s.Graph.IDs, string(a.id)), append(s.Graph.Classes, class)
				wanted++
			}
			return nil
		}); err != nil {
			return err
		}
		wanted = begin
		if err := t.texts(ctx, p, func(lo int, texts []string) error {
			for i, text := range texts {
				if want(x.Base[p] + lo + i) {
					if err := s.Texts.Append(text); err != nil {
						return err
					}
					wanted++
				}
			}
			return ctx.Err()
		}); err != nil {
			return err
		}
		wanted = begin
		if err := t.links(ctx, p, func(i int, to []int32, hidden []bool) error {
			if !want(x.Base[p] + i) {
				return nil
			}
			wanted++
			var row sparse.Vector
			if instances.has(x.Base[p] + i) {
				for _, j := range ascending(to, hidden, true) {
					if k, ok := at[j]; ok {
						row.Index = append(row.Index, k)
					}
				}
			}
			s.Graph.Neighbours.Append(row)
			return nil
		}); err != nil {
			return err
		}
	}
	order := make([]int32, n)
	for k := range order {
		order[k] = int32(k)
	}
	return s.Texts.Arrange(order)
}

// readTargets reads the labels' features and the tree of the sample.
func (t *task) readTargets(ctx context.Context, x index, s *sample) error {
	s.Labels = make([]float32, len(s.positions)*s.Dim)
	row := make([]byte, 4*s.Dim)
	for p := range t.plan.Partitions {
		if k, _ := slices.BinarySearch(s.positions, int32(x.Base[p])); k == len(s.positions) ||
			int(s.positions[k]) >= x.Base[p+1] {
			continue
		}
		object, from, err := t.labelRows(ctx, p)
		if err != nil {
			return err
		}
		err = s.within(x, p, func(i, k int) error {
			if _, err := object.ReadAt(row, int64(i)*int64(len(row))); err != nil {
				return from.explain(err)
			}
			floats(row, s.Labels[k*s.Dim:(k+1)*s.Dim])
			return nil
		})
		if err = errors.Join(err, object.Close()); err != nil {
			return err
		}
	}
	tree, err := t.loadTree(ctx)
	if err != nil || s.whole {
		s.Tree = tree
		return err
	}
	levels := make([]int, tree.Levels())
	for l := range levels {
		levels[l] = tree.Clusters(l)
	}
	leafOf := make([]int32, len(s.positions))
	for k, i := range s.positions {
		leafOf[k] = tree.Cluster(len(levels)-1, int(i))
	}
	s.Tree, err = labeltree.FromLeaves(levels, leafOf)
	return err
}
