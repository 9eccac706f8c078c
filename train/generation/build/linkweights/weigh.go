package linkweights

import (
	"context"
	"errors"
	"maps"
	"slices"

	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/relations"
)

// The sample: a run of nodes in the order of their hashes, and the far ends of their links.
const (
	mostNodes = 1 << 16
	mostLinks = 1 << 18
	// mostDim of the projected texts, whose first numbers say most.
	mostDim = 128
)

// errEnough ends the walk.
var errEnough = errors.New("enough")

// Weigh weighs the relations of the graph. It holds the sample's links, and 512 bytes for each node of it.
func Weigh(ctx context.Context, t *work.Task) error {
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	s := &sample{number: map[int32]int32{}, relation: map[relations.Relation]int32{}}
	for _, kind := range append([]string{""}, slices.Sorted(maps.Keys(x.Kinds))...) {
		s.name(relations.Relation{Kind: kind})
	}
	s.name(relations.Relation{Orders: true})
	if err := s.walk(ctx, t, x); err != nil {
		return err
	}
	s.leaveOutEmpty()
	s.Seed = t.Doc.Settings.Seed
	if err := s.readTexts(ctx, t, x); err != nil {
		return err
	}
	found, err := relations.Weigh(ctx, s.Sample)
	t.Stats = found
	for _, r := range found {
		if r.IsWeightless() {
			t.Resources.Log.Warn("links are left out, as each states the weight 0: is their weight the right field?",
				"links", r.Name())
		}
	}
	return err
}

type sample struct {
	relations.Sample
	number    map[int32]int32 // of a position
	positions []int32         // by number
	relation  map[relations.Relation]int32
}

func (s *sample) name(r relations.Relation) {
	s.relation[r] = int32(len(s.Relations))
	s.Relations = append(s.Relations, r)
}

func (s *sample) numberOf(position int32) int32 {
	k, ok := s.number[position]
	if !ok {
		k = int32(len(s.positions))
		s.number[position], s.positions = k, append(s.positions, position)
	}
	return k
}

// walk takes links that the evaluation does not hide, of nodes that are instances.
func (s *sample) walk(ctx context.Context, t *work.Task, x graph.Numbering) error {
	begin := graph.SampleBegin(t.Build, x, t.Doc.Settings.Seed)
	first := x.PartitionAt(begin)
	for k := 0; k <= t.Plan.Partitions; k++ {
		p := (first + k) % t.Plan.Partitions
		err := graph.EachRow(ctx, t, x, p, func(i int, r graph.Row) error {
			at := x.Base[p] + i
			switch {
			case k == 0 && at < begin || k == t.Plan.Partitions && at >= begin || r.Len() > t.Doc.Settings.MaxDegree:
				return nil
			case len(s.positions) >= mostNodes || len(s.Links) >= mostLinks:
				return errEnough
			}
			for _, f := range r.Facts {
				to, ok := r.Target(f.Slot)
				if !ok {
					continue
				}
				s.Links = append(s.Links, relations.Link{From: s.numberOf(int32(at)), To: s.numberOf(to),
					Relation: s.relation[relations.Relation{Kind: f.Kind, Orders: f.Orders}], Weight: f.Weight,
					Time: f.Time})
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaveOutEmpty leaves out relations that no link of the sample has.
func (s *sample) leaveOutEmpty() {
	number := make([]int32, len(s.Relations))
	for _, l := range s.Links {
		number[l.Relation] = 1
	}
	var some []relations.Relation
	for k, r := range s.Relations {
		if number[k] > 0 {
			number[k] = int32(len(some))
			some = append(some, r)
		}
	}
	for i, l := range s.Links {
		s.Links[i].Relation = number[l.Relation]
	}
	s.Relations = some
}

// readTexts reads the projected texts of the sample's nodes, one partition after the other.
func (s *sample) readTexts(ctx context.Context, t *work.Task, x graph.Numbering) error {
	dim, err := vocabulary.FeatureDim(ctx, t.Build)
	if err != nil {
		return err
	}
	s.Dim = min(dim, mostDim)
	s.Texts = make([]float32, len(s.positions)*s.Dim)
	for rest := slices.Sorted(slices.Values(s.positions)); len(rest) > 0; {
		p := x.PartitionAt(int(rest[0]))
		texts, err := vocabulary.OpenProjected(ctx, t.Build, p, dim)
		if err != nil {
			return err
		}
		for len(rest) > 0 && int(rest[0]) < x.Base[p+1] && err == nil {
			var row []float32
			if row, err = texts.RowOf(int(rest[0]) - x.Base[p]); err == nil {
				copy(s.Texts[int(s.number[rest[0]])*s.Dim:], row[:s.Dim])
			}
			rest = rest[1:]
		}
		if err = errors.Join(err, texts.Close(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
