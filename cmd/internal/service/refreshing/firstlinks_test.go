package refreshing

import (
	"testing"

	"giantstream/train/generation"
)

func TestFirstLinks(t *testing.T) {
	for name, tc := range map[string]struct {
		textOnly        string
		links, dangling int
		edges           int64
		want            bool
	}{
		"no edge yet":              {"no node has a link", 0, 0, 0, false},
		"the first edges":          {"no node has a link", 0, 0, 3, true},
		"trained on links":         {"", 10, 0, 12, false},
		"edges to nobody":          {"no node has a link", 0, 2, 2, false},
		"links that teach nothing": {"the nodes' links are too few", 2, 0, 2, false},
	} {
		doc := &generation.Doc{TextOnly: tc.textOnly, Graph: generation.GraphStats{Links: tc.links, Dangling: tc.dangling}}
		if got := firstLinks(doc, tc.edges); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
