// Command gen writes the sample graph: the public API of a Go source tree as nodes.jsonl.gz and
// edges.jsonl.gz. Package sample describes the graph.
//
//	go run ./gen -out .            # the standard library of this Go
//	go run ./gen -root DIR -out .  # the tree DIR/src
//
// The same tree gives the same bytes on every machine.
package main

import (
	"flag"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", build.Default.GOROOT, "Go installation whose src directory is read")
	out := flag.String("out", ".", "directory to write to")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	if root == "" {
		return fmt.Errorf("no Go installation known: give one with -root \"$(go env GOROOT)\"")
	}
	packages, err := load(filepath.Join(root, "src"))
	if err != nil {
		return err
	}
	g := newGraph(packages)
	if err := writeLines(filepath.Join(out, "nodes.jsonl.gz"), g.nodes); err != nil {
		return err
	}
	if err := writeLines(filepath.Join(out, "edges.jsonl.gz"), g.edges); err != nil {
		return err
	}
	fmt.Printf("%d nodes and %d edges from %d packages\n", len(g.nodes), len(g.edges), len(packages))
	return nil
}
