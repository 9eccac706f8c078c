package training

import (
	"context"
	"errors"
	"slices"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/labels"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// Sample is the part of the graph that the encoder is trained and evaluated on: all of it, if it has no more than
// Plan.Sample nodes. Else a run of nodes in the order of their hashes, with all their links, and the nodes at the far
// ends: these are labels, but no instances. Close it after use.
type Sample struct {
	fit.Inputs
	Positions []int32 // ascending
	Whole     bool
	instances PositionRun
	Known     *train.Graph
	Hidden    []eval.Edge
}

// Close gives back temporary files.
func (s *Sample) Close() error { return errors.Join(s.Texts.Close(), s.Features.Close()) }

// takeSample chooses a sample, and reads what training takes.
func takeSample(ctx context.Context, t *work.Task) (_ *Sample, err error) {
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return nil, err
	}
	s := &Sample{Whole: x.Nodes() <= t.Plan.Sample}
	if s.instances, err = choosePositions(ctx, t, x, s); err != nil {
		return nil, err
	}
	if s.Vectorizer, err = vocabulary.LoadVectorizer(ctx, t.Build); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := readSample(ctx, t, x, s); err != nil {
		return nil, err
	}
	if s.Projection, err = vocabulary.LoadProjection(ctx, t.Build); err != nil {
		return nil, err
	}
	if s.Dim, err = vocabulary.FeatureDim(ctx, t.Build); err != nil {
		return nil, err
	}
	return s, readSampleTargets(ctx, t, x, s)
}

// putSampled stores which nodes are in the sample.
func putSampled(ctx context.Context, t *work.Task, s *Sample) error {
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	out := t.NewSections(t.Plan.Partitions)
	defer out.Close() //nolint:errcheck // a temporary file
	for p := range t.Plan.Partitions {
		if err := s.VisitPartition(x, p, func(i, _ int) error {
			return out.Add(p, sections.AppendInts(nil, []int32{int32(i)}))
		}); err != nil {
			return err
		}
	}
	return t.PutSections(ctx, "sampled", out)
}

// SampledNodes returns which nodes of a partition are in the sample, ascending.
func SampledNodes(ctx context.Context, b *work.Build, p int) ([]int32, error) {
	from, err := b.OutputsOf(ctx, stages.Encoder, 0)
	if err != nil {
		return nil, err
	}
	s, err := from.ReadSection(ctx, "sampled", p)
	return sections.ReadInts(s), err
}

// ReopenSample reads what evaluation takes of the sample that the encoder was trained on.
func ReopenSample(ctx context.Context, t *work.Task, instances PositionRun) (x graph.Numbering, _ *Sample, err error) {
	if x, err = graph.LoadNumbering(ctx, t.Build); err != nil {
		return x, nil, err
	}
	s := &Sample{Whole: x.Nodes() <= t.Plan.Sample, instances: instances}
	for p := range t.Plan.Partitions {
		some, err := SampledNodes(ctx, t.Build, p)
		if err != nil {
			return x, nil, err
		}
		for _, i := range some {
			s.Positions = append(s.Positions, int32(x.Base[p])+i)
		}
	}
	if err := readSample(ctx, t, x, s); err != nil {
		return x, nil, errors.Join(err, s.Close())
	}
	return x, s, nil
}

// PositionRun is a run of positions, from Begin on and around.
type PositionRun struct {
	Begin  int `json:"begin"`
	Length int `json:"length"`
}

func (r PositionRun) includes(position, nodes int) bool {
	return (position-r.Begin+nodes)%nodes < r.Length
}

// choosePositions sets s.positions, and returns the run of nodes that are instances.
func choosePositions(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample) (PositionRun, error) {
	all := PositionRun{0, x.Nodes()}
	if s.Whole {
		s.Positions = make([]int32, x.Nodes())
		for i := range s.Positions {
			s.Positions[i] = int32(i)
		}
		return all, nil
	}
	taken := make(map[int32]struct{}, t.Plan.Sample)
	all.Begin, all.Length = graph.SampleBegin(t.Build, x, t.Doc.Settings.Seed), 0
	first := x.PartitionAt(all.Begin)
	for k := 0; k <= t.Plan.Partitions; k++ {
		p := (first + k) % t.Plan.Partitions
		err := graph.EachNeighbours(ctx, t.Build, p, func(i int, n graph.Neighbours) error {
			at := x.Base[p] + i
			if k == 0 && at < all.Begin || k == t.Plan.Partitions && at >= all.Begin {
				return nil
			}
			if len(taken) >= t.Plan.Sample {
				return errEnough
			}
			all.Length++
			taken[int32(at)] = struct{}{}
			if len(n.To) <= t.Doc.Settings.MaxDegree {
				for _, j := range n.To {
					if j >= 0 {
						taken[j] = struct{}{}
					}
				}
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return all, err
		}
	}
	for i := range taken {
		s.Positions = append(s.Positions, i)
	}
	slices.Sort(s.Positions)
	return all, nil
}

// RunOf returns which of the sample's nodes are in a partition: n of them, from the first on.
func (s *Sample) RunOf(x graph.Numbering, p int) (first, n int) {
	first, _ = slices.BinarySearch(s.Positions, int32(x.Base[p]))
	end, _ := slices.BinarySearch(s.Positions, int32(x.Base[p+1]))
	return first, end - first
}

// VisitPartition calls visit with the number of each node of the sample that is in a partition: in the partition, and
// in the sample.
func (s *Sample) VisitPartition(x graph.Numbering, p int, visit func(i, k int) error) error {
	first, n := s.RunOf(x, p)
	for k := first; k < first+n; k++ {
		if err := visit(int(s.Positions[k])-x.Base[p], k); err != nil {
			return err
		}
	}
	return nil
}

// readSample reads ids, classes, texts and links of the sample, hides some of the links, and, if there is a
// vectorizer, reads the features.
func readSample(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample) error {
	n := len(s.Positions)
	s.Texts = fit.NewTexts(t.TaskResources())
	s.Graph = &train.Graph{IDs: make([]string, 0, n), Classes: make([]string, 0, n),
		Neighbours: &sparse.Matrix{Cols: n, Start: []int64{0}}}
	if s.Vectorizer != nil {
		s.Features = fit.NewFeatures(s.Vectorizer.Dim(), t.TaskResources())
	}
	at := make(map[int32]int32, n)
	order := make([]int32, n)
	for k, i := range s.Positions {
		at[i], order[k] = int32(k), int32(k)
	}
	for p := range t.Plan.Partitions {
		if _, some := s.RunOf(x, p); some == 0 {
			continue
		}
		for _, read := range []func(context.Context, *work.Task, graph.Numbering, *Sample, int) error{readSampleNodes,
			readSampleTexts, readSampleFeatures} {
			if err := read(ctx, t, x, s, p); err != nil {
				return err
			}
		}
		if err := readSampleLinks(ctx, t, x, s, p, at); err != nil {
			return err
		}
	}
	s.Known, s.Hidden = fit.HideEdges(s.Graph, t.Doc.Settings)
	s.Graph = s.Known
	if err := s.Texts.Arrange(order); err != nil || s.Features == nil {
		return err
	}
	return s.Features.Seal()
}

// picks returns a function that says of the nodes of a partition, asked in ascending order, which are in the sample.
func (s *Sample) picks(x graph.Numbering, p int) func(i int) bool {
	next, _ := s.RunOf(x, p)
	return func(i int) bool {
		found := next < len(s.Positions) && int(s.Positions[next]) == x.Base[p]+i
		if found {
			next++
		}
		return found
	}
}

func readSampleNodes(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample, p int) error {
	wanted, classes := s.picks(x, p), map[string]string{}
	return graph.EachNode(ctx, t.Build, p, func(i int, a graph.Node) error {
		if !wanted(i) {
			return nil
		}
		class, known := classes[string(a.Class)]
		switch {
		// its degree is not known here, so that it is not asked about
		case !s.instances.includes(x.Base[p]+i, x.Nodes()):
			class = ""
		case !known:
			class = string(a.Class)
			classes[class] = class
		}
		s.Graph.IDs, s.Graph.Classes = append(s.Graph.IDs, string(a.ID)), append(s.Graph.Classes, class)
		return nil
	})
}

func readSampleTexts(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample, p int) error {
	wanted := s.picks(x, p)
	return graph.EachTextBlock(ctx, t.Build, p, func(lo int, texts []string) error {
		for i, text := range texts {
			if wanted(lo + i) {
				if err := s.Texts.Append(text); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	})
}

func readSampleFeatures(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample, p int) error {
	if s.Features == nil {
		return nil
	}
	wanted := s.picks(x, p)
	return vocabulary.EachCounts(ctx, t.Build, s.Vectorizer, p, func(lo int, c *vocabulary.TextCounts) error {
		some := c.Records[:0]
		for i, r := range c.Records {
			if wanted(lo + i) {
				some = append(some, r)
			}
		}
		c.Records = some
		return s.Features.Append(len(some), t.Workers, func() func(int, sparse.Vector) sparse.Vector {
			return c.Features
		})
	})
}

func readSampleLinks(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample, p int, at map[int32]int32) error {
	wanted := s.picks(x, p)
	return graph.EachNeighbours(ctx, t.Build, p, func(i int, n graph.Neighbours) error {
		if !wanted(i) {
			return nil
		}
		var row sparse.Vector
		if s.instances.includes(x.Base[p]+i, x.Nodes()) {
			positions, weights := n.Nodes(true)
			for slot, j := range positions {
				if k, ok := at[j]; ok {
					row.Index = append(row.Index, k)
					if weights != nil {
						row.Value = append(row.Value, weights[slot])
					}
				}
			}
		}
		s.Graph.Neighbours.Append(row)
		return nil
	})
}

// readSampleTargets reads the labels' features and the tree of the sample.
func readSampleTargets(ctx context.Context, t *work.Task, x graph.Numbering, s *Sample) error {
	s.Labels = make([]float32, len(s.Positions)*s.Dim)
	each := 4 * s.Dim
	buffer := make([]byte, graph.Block*each)
	for p := range t.Plan.Partitions {
		if k, _ := slices.BinarySearch(s.Positions, int32(x.Base[p])); k == len(s.Positions) ||
			int(s.Positions[k]) >= x.Base[p+1] {
			continue
		}
		object, from, err := labels.OpenPIFARows(ctx, t.Build, p)
		if err != nil {
			return err
		}
		// Nodes come in ascending order. A request for each row would take milliseconds, in a bucket.
		lo, hi := 0, 0
		err = s.VisitPartition(x, p, func(i, k int) error {
			if i < lo || i >= hi {
				lo, hi = i, min(i+graph.Block, x.SizeOf(p))
				b := buffer[:(hi-lo)*each]
				if n, err := object.ReadAt(b, int64(lo)*int64(each)); n < len(b) {
					return from.Explain(err)
				}
			}
			sections.ReadFloats(buffer[(i-lo)*each:(i-lo+1)*each], s.Labels[k*s.Dim:(k+1)*s.Dim])
			return nil
		})
		if err = errors.Join(err, object.Close()); err != nil {
			return err
		}
	}
	tree, err := labels.LoadTree(ctx, t.Build)
	if err != nil || s.Whole {
		s.Tree = tree
		return err
	}
	levels := make([]int, tree.Levels())
	for l := range levels {
		levels[l] = tree.Clusters(l)
	}
	leafOf := make([]int32, len(s.Positions))
	for k, i := range s.Positions {
		leafOf[k] = tree.Cluster(len(levels)-1, int(i))
	}
	s.Tree, err = labeltree.FromLeaves(levels, leafOf)
	return err
}

// errEnough ends a walk that has found enough nodes.
var errEnough = errors.New("enough")
