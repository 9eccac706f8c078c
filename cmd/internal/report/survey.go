package report

import (
	"context"
	"strings"

	"giantstream/cmd/internal/nodemap"
	"giantstream/train"
	"giantstream/train/generation"
)

// excerptRunes is how much of a text the page shows.
const excerptRunes = 100

// surveyed is what was read of a generation.
type surveyed struct {
	nodes    []nodemap.Node // ascending by id
	examples []example
	// classless nodes are coloured by a level of the tree instead.
	classless bool
}

// survey reads the sample and the examples.
func survey(ctx context.Context, in Input, progress train.Progress) (*surveyed, error) {
	nodes, err := nodemap.Read(ctx, in.Store, in.Doc, nodemap.Sampled, progress)
	if err != nil {
		return nil, err
	}
	s := &surveyed{nodes: nodes}
	open, err := generation.Open(ctx, in.Store, in.Doc, nil)
	if err != nil {
		return nil, err
	}
	if err := s.describe(ctx, in.Source, open, progress); err != nil {
		return nil, err
	}
	if err := s.nearestInStore(ctx, in.Store, in.Doc, progress); err != nil {
		return nil, err
	}
	return s, s.nearestByText(ctx, in.Source, open, progress)
}

// describe finds classes and texts of the sample, and chooses the examples from it.
func (s *surveyed) describe(ctx context.Context, source generation.Source, open *generation.Generation,
	progress train.Progress) error {
	at := map[string]int{}
	for i, n := range s.nodes {
		at[n.ID] = i
	}
	candidates := map[int]example{}
	progress.Stage("read the sample's texts", int64(open.Doc.Graph.Nodes))
	for r, err := range source.Rows(ctx) {
		if err != nil {
			return err
		}
		progress.Add(1)
		i, ok := at[r.NodeID]
		if !ok {
			continue
		}
		n := &s.nodes[i]
		n.Class, n.Excerpt = strings.Clone(r.Class), excerpt(r.Text)
		if len(r.Labels) < exampleLinks {
			continue
		}
		e := example{ID: n.ID, Class: n.Class, Excerpt: n.Excerpt, text: strings.Clone(r.Text), phi: n.Vector,
			links: map[string]bool{}}
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
	s.classless = nodemap.ClusterAsClass(s.nodes, open)
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
