package report

import "giantstream/cmd/internal/nodemap"

// mapSize is the side of a map in its own units, mapMargin what stays free.
const mapSize, mapMargin = 400, 8

// drawing is a map of the sample.
type drawing struct {
	Title, Says string
	Preserved   float64
	Dots        []mark
}

// mark is a node on a map.
type mark struct {
	X, Y  string
	Group int
	Title string
}

// draw lays the sample out, twice.
func draw(s *surveyed) ([]drawing, []nodemap.Group) {
	if len(s.nodes) < 3 {
		return nil, nil
	}
	legend, of := nodemap.Groups(s.nodes)
	maps := []drawing{
		{Title: "Neighbours kept together",
			Says: "What is near on the map is near in the embeddings; the distance between groups says nothing."},
		{Title: "PCA",
			Says: "The two directions in which the embeddings vary most; what lies on one another need not be near."},
	}
	together, pca := nodemap.Layouts(s.nodes)
	for k, layout := range []nodemap.Layout{together, pca} {
		maps[k].Preserved = layout.Preserved
		maps[k].Dots = s.marks(layout.At, of)
	}
	return maps, legend
}

func (s *surveyed) marks(at []nodemap.Position, of []int) []mark {
	out := make([]mark, len(at))
	for i, p := range nodemap.Fit(at, mapSize, mapMargin) {
		n := s.nodes[i]
		title := n.ID
		if n.Class != "" {
			title += " · " + n.Class
		}
		if n.Excerpt != "" {
			title += "\n" + n.Excerpt
		}
		out[i] = mark{coordinate(p[0]), coordinate(p[1]), of[i], title}
	}
	return out
}
