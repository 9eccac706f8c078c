package cli

import (
	"fmt"
	"strings"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/train/generation"
)

// printOutline prints a line per cluster, indented by level.
func printOutline(p *command.Printer, outline []generation.Cluster) {
	names := make([]string, len(outline))
	width, digits := 0, 0
	for i, c := range outline {
		names[i] = fmt.Sprintf("%s%d.%d", strings.Repeat("  ", c.Level), c.Level, c.Cluster)
		width, digits = max(width, len(names[i])), max(digits, len(console.Count(c.Labels)))
	}
	for i, c := range outline {
		p.Line("%-*s  %*s labels  %s", width, names[i], digits, console.Count(c.Labels),
			console.Plain(strings.Join(c.Terms, ", ")))
	}
}

// treeView is a label tree as inspect tree shows it.
type treeView struct {
	Generation int64                `json:"generation"`
	Clusters   []generation.Cluster `json:"clusters"`
}

// printOverlap prints how the embeddings compare with those of the parent generation.
func printOverlap(p *command.Printer, d *generation.Doc) {
	o := d.Overlap
	if o == nil {
		return
	}
	space := "its space: vectors of both can be compared"
	if d.SpaceOf() == d.Generation {
		space = "another space: compare no vector with one of before"
	}
	p.Line("beside %-6d %s", d.Parent, space)
	p.Line("              %.0f %% of the ten nearest neighbours stayed; new vectors find %.0f %% of theirs among the "+
		"old ones, old ones %.0f %% among the new", 100*o.Kept, 100*o.NewOnOld, 100*o.OldOnNew)
	for _, b := range o.ByDegree {
		p.Line("              with %s links: %.0f %%, %.0f %%, %.0f %%", b.Degree, 100*b.Kept, 100*b.NewOnOld,
			100*b.OldOnNew)
	}
}

// printMapping prints how the tree differs from that of the parent generation.
func printMapping(p *command.Printer, d *generation.Doc) {
	m := d.Mapping
	if m == nil {
		return
	}
	p.Line("since %-7d %s labels stayed, %s came, %s went; %s links led to labels that generation %d did not know",
		d.Parent, console.Count(m.Shared), console.Count(m.New), console.Count(m.Gone), console.Count(m.UnknownLinks),
		d.Parent)
	for _, l := range m.Levels {
		p.Line("              %s → %s clusters: %.0f %% of labels stayed with most of their cluster, AMI %.2f",
			console.Count(l.OldClusters), console.Count(l.NewClusters), 100*l.Matched, l.AMI)
	}
}
