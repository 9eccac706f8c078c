package report

import (
	"context"
	"slices"
	"strings"

	"giantstream/cmd/internal/nodemap"
	"giantstream/internal/ambient"
	"giantstream/train/generation"
)

// excerptRunes is how much of a text the page shows.
const excerptRunes = 100

// surveyed is what was read of a generation.
type surveyed struct {
	nodes    []nodemap.Node // ascending by id
	examples []*example
	chosen   []*chosen // that were asked for
	quality  quality
	open     *generation.Generation
	// classless nodes are coloured by a level of the tree instead.
	classless bool
}

// survey reads the sample and the examples.
func survey(ctx context.Context, in Input, progress ambient.Progress) (*surveyed, error) {
	nodes, err := nodemap.Read(ctx, in.Store, in.Doc, nodemap.Sampled, progress)
	if err != nil {
		return nil, err
	}
	s := &surveyed{nodes: nodes, chosen: choose(in.Nodes)}
	if s.open, err = generation.Open(ctx, in.Store, in.Doc, nil); err != nil {
		return nil, err
	}
	if err := s.describe(ctx, in.Source, progress); err != nil {
		return nil, err
	}
	if err := embed(ctx, in.Store, in.Doc, s.chosen, progress); err != nil {
		return nil, err
	}
	if err := s.nearestInStore(ctx, in.Store, in.Doc, progress); err != nil {
		return nil, err
	}
	return s, s.nearestByText(ctx, in.Source, progress)
}

// shown are the examples and the nodes that were asked for.
func (s *surveyed) shown() []*example {
	all := slices.Clone(s.examples)
	for _, c := range s.chosen {
		all = append(all, c.example)
	}
	return all
}

// describe finds classes and texts of the sample and of the nodes that were asked for, chooses the examples from the
// sample, and counts what the input is like.
func (s *surveyed) describe(ctx context.Context, source generation.Source, progress ambient.Progress) error {
	at := map[string]int{}
	for i, n := range s.nodes {
		at[n.ID] = i
	}
	asked := map[string]*chosen{}
	for _, c := range s.chosen {
		asked[c.ID] = c
	}
	candidates := map[int]*example{}
	progress.Stage("read the sample's texts", int64(s.open.Doc.Graph.Nodes))
	for r, err := range source.Rows(ctx) {
		if err != nil {
			return err
		}
		progress.Add(1)
		if r.Deleted {
			continue
		}
		s.quality.note(&r)
		if c := asked[r.NodeID]; c != nil {
			c.note(&r)
		}
		i, ok := at[r.NodeID]
		if !ok {
			continue
		}
		n := &s.nodes[i]
		n.Class, n.Excerpt = strings.Clone(r.Class), excerpt(r.Text)
		if len(r.Labels) < exampleLinks {
			continue
		}
		e := &example{ID: n.ID, Class: n.Class, Excerpt: n.Excerpt, text: strings.Clone(r.Text), phi: n.Vector,
			links: map[string]bool{}, shown: neighboursShown}
		for _, l := range r.Labels {
			e.links[strings.Clone(l)] = true
		}
		candidates[i] = e
		// Only those with the smallest hashes so far are kept: they hold their links.
		if len(candidates) > examplesShown {
			worst := -1
			for k := range candidates {
				if worst < 0 || s.nodes[k].Hash > s.nodes[worst].Hash {
					worst = k
				}
			}
			delete(candidates, worst)
		}
	}
	for i := range s.nodes {
		if e, ok := candidates[i]; ok {
			s.examples = append(s.examples, e)
		}
	}
	s.classless = nodemap.ClusterAsClass(s.nodes, s.open)
	return nil
}

// excerpt is the beginning of a text, on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 8*excerptRunes)]), " ")
	runes := []rune(strings.ToValidUTF8(text, ""))
	if len(runes) <= excerptRunes {
		return string(runes)
	}
	return string(runes[:excerptRunes]) + "…"
}
