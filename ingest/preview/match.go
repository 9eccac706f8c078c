package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Match says how many of the ids that edges, orders or attributes name are ids of nodes.
type Match struct {
	// Ends are the different ids that these name, and Known those of them that are ids of nodes.
	Ends  int `json:"ends"`
	Known int `json:"known"`
	// Unlinked are the ids of nodes that none of these names.
	Unlinked int `json:"unlinked_nodes"`
	// Unknown are examples of ends that are no nodes, and Nodes of ids of nodes.
	Unknown []string `json:"unknown_examples,omitempty"`
	Nodes   []string `json:"node_examples,omitempty"`
	// Hint says what would make half of the unknown ends known, "" for nothing.
	Hint string `json:"hint,omitempty"`
	// Partial: not all records were read, so that unknown ends may be nodes further on.
	Partial bool `json:"partial"`
	// someNodes: not all nodes were read.
	someNodes bool
}

const maxExamples = 3

// rewrites are the usual differences between the ids of two exports.
var rewrites = []struct {
	hint    string
	rewrite func(string) string
}{
	{"without spaces around them", strings.TrimSpace},
	{"in lower case", strings.ToLower},
	{"without the .0 that pandas writes for integers of a column with gaps",
		func(s string) string { return strings.TrimSuffix(s, ".0") }},
	{"without leading zeros", func(s string) string { return strings.TrimLeft(s, "0") }},
	{"split at ; (--list-separator ';')", func(s string) string { first, _, _ := strings.Cut(s, ";"); return first }},
	{"split at | (--list-separator '|')", func(s string) string { first, _, _ := strings.Cut(s, "|"); return first }},
	{"split at , (--list-separator ',')", func(s string) string { first, _, _ := strings.Cut(s, ","); return first }},
	{"split at spaces (--list-separator ' ')",
		func(s string) string { first, _, _ := strings.Cut(s, " "); return first }},
}

func match(ids, ends map[string]bool) *Match {
	m := &Match{Ends: len(ends)}
	var unknown []string
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		if ids[end] {
			m.Known++
		} else {
			unknown = append(unknown, end)
		}
	}
	m.Unlinked = len(ids) - m.Known
	m.Unknown = unknown[:min(len(unknown), maxExamples)]
	nodes := slices.Sorted(maps.Keys(ids))
	m.Nodes = nodes[:min(len(nodes), maxExamples)]
	if len(unknown) == 0 {
		return m
	}
	for _, r := range rewrites {
		rewritten := map[string]bool{}
		for id := range ids {
			rewritten[r.rewrite(id)] = true
		}
		found := 0
		for _, end := range unknown {
			if rewritten[r.rewrite(end)] {
				found++
			}
		}
		if 2*found >= len(unknown) {
			m.Hint = fmt.Sprintf("%d of the %d ids that are not known would be, %s", found, len(unknown), r.hint)
			break
		}
	}
	return m
}

// warnings say what looks like ids of another system. of: what names the ids.
func (m *Match) warnings(of string) []string {
	switch {
	case m == nil:
		return nil
	case m.Hint != "":
		return []string{fmt.Sprintf("ids of %s and of nodes differ, such as %q and %q: %s", of, m.Unknown[0],
			m.Nodes[0], m.Hint)}
	case m.Known == 0 && !m.someNodes:
		return []string{fmt.Sprintf("no id that %s name is the id of a node: %s have ids such as %q, nodes such as %q",
			of, of, m.Unknown[0], m.Nodes[0])}
	}
	return nil
}
