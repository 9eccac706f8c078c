package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Classifiers on a finished generation, with each way to split its nodes.
func TestHeads(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	place := []string{"-c", config, "--store", dir}
	command := func(args ...string) []string { return slices.Concat([]string{"evaluate", "heads"}, place, args) }
	h := newAuthor(10, 300).beginning()
	succeed(t, slices.Concat([]string{"run", "--until-idle"}, place, h.write(t, inputs))...)

	var file strings.Builder
	parts := []string{"train", "train", "valid", "test"}
	for k, id := range sortedIDs(graphOf(h)) {
		fmt.Fprintf(&file, "%s,%s\n", id, parts[k%len(parts)])
	}
	path := writeFile(t, filepath.Join(inputs, "split.csv"), file.String())

	type rows []struct {
		Head string
		Runs []struct {
			Train, Validation, Test int
			Accuracy, Majority      float64
			Classes                 []struct{ Class string }
		}
	}
	for _, split := range [][]string{
		{"--train", "0.5", "--validation", "0.2"},
		{"--split", "time", "--train", "0.5", "--validation", "0.2"},
		{"--split", path},
	} {
		var got rows
		succeedJSON(t, &got, command(slices.Concat(split, []string{"--runs", "1", "--json"})...)...)
		if len(got) != 3 {
			t.Fatalf("%q: heads %+v, want three", split, got)
		}
		for _, r := range got {
			run := r.Runs[0]
			if run.Train <= run.Test || run.Validation == 0 || len(run.Classes) < 2 {
				t.Errorf("%q, %s: %+v", split, r.Head, run)
			}
			if run.Accuracy <= run.Majority {
				t.Errorf("%q, %s: accuracy %.3f, the commonest class has %.3f", split, r.Head, run.Accuracy, run.Majority)
			}
		}
	}
}

func sortedIDs(nodes map[string]node) (ids []string) {
	for id := range nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
