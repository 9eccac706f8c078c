package main

import (
	"cmp"
	"maps"
	"slices"
)

type node struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Label string `json:"label"`
}

type edge struct {
	Src  string `json:"src"`
	Dst  string `json:"dst"`
	Kind string `json:"kind"`
}

type graph struct {
	nodes []node // ascending by ID
	edges []edge // ascending by Src, Dst
}

// index finds the node that stands for a name.
type index struct {
	packages map[string]*pkg // by import path
	// symbols maps "path.Name" and "path.Type.Method" to a node's ID. The two differ for all but
	// the first name of a const or var group.
	symbols map[string]string
}

// newGraph builds the graph in two passes: all nodes, then the edges between them.
func newGraph(packages []*pkg) graph {
	ix := index{packages: map[string]*pkg{}, symbols: map[string]string{}}
	nodes := map[string]node{}
	decls := map[*pkg][]decl{}
	for _, p := range packages {
		ix.packages[p.ImportPath] = p
		nodes[p.ImportPath] = node{p.ImportPath, packageText(p), label(p)}
		decls[p] = declarations(p)
		for _, d := range decls[p] {
			id := p.ImportPath + "." + d.names[0]
			if _, taken := nodes[id]; taken {
				continue
			}
			nodes[id] = node{id, declText(p, d), label(p)}
			for _, name := range d.names {
				ix.symbols[p.ImportPath+"."+name] = id
			}
		}
	}

	edges := edgeSet{}
	for _, p := range packages {
		edges.addPackage(ix, p)
		for _, d := range decls[p] {
			edges.addDecl(ix, p, d)
		}
	}
	return graph{
		nodes: slices.SortedFunc(maps.Values(nodes), func(a, b node) int { return cmp.Compare(a.ID, b.ID) }),
		edges: edges.sorted(),
	}
}
