package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/stream/commitlog"
)

// With files, local/ is a cache: after it is removed, a run sends the files again, every change in
// them arrives, even with the event time of before, and the graph is complete, also after the same
// run again. The checkpoints of the states may be gone as well.
func TestRemovingTheLocalFolderLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the pipeline ten times")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	text := map[string]string{}
	links := map[string]map[string]bool{}
	link := func(a, b string) {
		for _, e := range [][2]string{{a, b}, {b, a}} {
			if links[e[0]] == nil {
				links[e[0]] = map[string]bool{}
			}
			links[e[0]][e[1]] = true
		}
	}
	var edges [][2]string
	grow := func(from, to int) {
		for i := from; i < to; i++ {
			id := fmt.Sprint("n", i)
			text[id] = fmt.Sprintf("first words of number%d topic%d", i, i%3)
			if i > 0 {
				edges = append(edges, [2]string{id, fmt.Sprint("n", (i*7)%i)})
				link(id, edges[len(edges)-1][1])
			}
		}
	}
	run := func() {
		t.Helper()
		var nodeLines, edgeLines bytes.Buffer
		for _, id := range slices.Sorted(maps.Keys(text)) {
			line, _ := json.Marshal(map[string]any{"id": id, "text": text[id], "at": 1_700_000_000})
			fmt.Fprintf(&nodeLines, "%s\n", line)
		}
		for _, e := range edges {
			fmt.Fprintf(&edgeLines, `{"src":%q,"dst":%q,"at":1700000000}`+"\n", e[0], e[1])
		}
		for name, data := range map[string][]byte{"nodes.jsonl": nodeLines.Bytes(), "edges.jsonl": edgeLines.Bytes()} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"run", "--store", store, "--nodes", filepath.Join(dir, "nodes.jsonl"),
			"--edges", filepath.Join(dir, "edges.jsonl"), "--event-time", "at", "--encoder", "linear", "--until-idle"},
			&out, &errs, nil)
		if code != command.ExitOK {
			t.Fatalf("exit code %d\n%s\n%s", code, out.String(), errs.String())
		}
		checkNewest(t, store, text, links)
	}
	grow(0, 60)
	run()
	for round := range 4 {
		if err := os.RemoveAll(filepath.Join(store, "local")); err != nil {
			t.Fatal(err)
		}
		if round%2 == 1 {
			found, err := filepath.Glob(filepath.Join(store, "shards", "*", "state"))
			if err != nil || len(found) == 0 {
				t.Fatal("no checkpoints", err)
			}
			for _, path := range found {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := round; i < 60; i += 5 {
			text[fmt.Sprint("n", i)] = fmt.Sprintf("changed in round%d number%d", round, i)
		}
		grow(60+5*round, 65+5*round)
		run()
		run()
	}
}

// TestFilesThatLackSomethingAreNoticed: everything but the commit log is gone, and the files that are
// sent again do not have all that was committed.
func TestFilesThatLackSomethingAreNoticed(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	write := func(name string, lines ...string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(edges string) (code int, says string) {
		var out, errs bytes.Buffer
		nodes := write("nodes.csv", "id,text", "a,one two", "b,two three", "c,three one")
		code = Run(t.Context(), []string{"run", "--store", store, "--nodes", nodes, "--edges", edges, "--until-idle"},
			&out, &errs, nil)
		return code, out.String() + errs.String()
	}
	whole := write("whole.csv", "src,dst", "a,b", "b,c")
	part := write("part.csv", "src,dst", "a,b")
	if code, says := run(whole); code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, says)
	}
	gone, err := filepath.Glob(filepath.Join(store, "shards", "*", "state"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(gone, filepath.Join(store, "local")) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	const want = "3 nodes and 1 edges are live, 3 and 2 were"
	if code, says := run(part); code != command.ExitLost || strings.Count(says, want) != 2 {
		t.Errorf("exit code %d, want %d and %q in the report and as the error: %s", code, command.ExitLost, want, says)
	}
	if code, says := run(whole); code != command.ExitOK {
		t.Errorf("with all files again: exit code %d: %s", code, says)
	}
}

// checkNewest compares the newest rows with the graph.
func checkNewest(t *testing.T, dir string, text map[string]string, links map[string]map[string]bool) {
	t.Helper()
	cfg := config.Local()
	if err := command.PlaceAt(&cfg, dir); err != nil {
		t.Fatal(err)
	}
	store, err := wiring.OpenStore(t.Context(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := commitlog.CurrentCut(t.Context(), store, cfg.Shards)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for p := range cfg.Shards {
		for r, err := range cut.Newest(t.Context(), store, p) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
			if want := slices.Sorted(maps.Keys(links[r.NodeID])); r.Text != text[r.NodeID] ||
				!slices.Equal(r.Labels, want) {
				t.Errorf("%s is %q with labels %v, want %q with %v", r.NodeID, r.Text, r.Labels, text[r.NodeID], want)
			}
		}
	}
	if seen != len(text) {
		t.Errorf("%d nodes have rows, want %d", seen, len(text))
	}
}
