package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every command shows in its help how it is used.
func TestHelpHasExamples(t *testing.T) {
	for _, path := range commands(t, nil) {
		out := succeed(t, append(path, "--help")...)
		if !strings.Contains(out, "Examples:\n  giantstream "+strings.Join(path, " ")) {
			t.Errorf("giantstream %s --help has no example:\n%s", strings.Join(path, " "), out)
		}
	}
}

// commands returns the paths of all commands that do something, as shell
// completion finds them.
func commands(t *testing.T, path []string) [][]string {
	t.Helper()
	var leaves [][]string
	for line := range strings.Lines(succeed(t, slices.Concat([]string{"__complete"}, path, []string{""})...)) {
		name, _, described := strings.Cut(line, "\t")
		if described && name != "help" && name != "completion" {
			leaves = append(leaves, commands(t, append(slices.Clone(path), name))...)
		}
	}
	if leaves == nil {
		return [][]string{path}
	}
	return leaves
}

// What goes wrong says what to do, with an exit code that tells a script whose
// fault it is, and leaves nothing behind.
func TestMistakes(t *testing.T) {
	faults := writeFile(t, filepath.Join(t.TempDir(), "faults.yaml"), "shards: 0\ntrain: {encoder: oracle}\nwindow: {length: 1s}\n")
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"", 0, nil},
		{"frobnicate", 2, []string{`unknown command "frobnicate"`, "See 'giantstream --help'"}},
		{"inspect frob", 2, []string{`unknown command "frob"`, "See 'giantstream inspect --help'"}},
		{"run --frob", 2, []string{"unknown flag: --frob", "See 'giantstream run --help'"}},
		{"run now --store DIR", 2, []string{`"now"`, "See 'giantstream run --help'"}},
		{"run", 2, []string{"-c FILE", "--store DIR"}},
		{"run --store DIR --encoder oracle", 2, []string{"train.encoder: must be one of: bag, linear, bert"}},
		{"run --store DIR --encoder bert", 2, []string{"train.bert.model", "Hugging Face"}},
		{"run --store DIR --nodes none*.jsonl", 2, []string{"--nodes", "none*.jsonl", "no file matches"}},
		{"run --store DIR --log-level loud", 2, []string{"debug, info, warn or error"}},
		{"run --store ftp://host/dir", 2, []string{"s3://bucket/prefix"}},
		{"run -c no-such.yaml", 2, []string{"no-such.yaml"}},
		{"run -c FAULTS", 2, []string{"3 faults", "shards", "train.encoder", "window.length", "changes, bytes, time"}},
		{"config check FAULTS", 2, []string{"3 faults", "faults.yaml:1:", "faults.yaml:2:", "faults.yaml:3:"}},
		{"config check", 2, []string{"See 'giantstream config check --help'"}},
		{"backfill --store DIR", 2, []string{"--nodes", "--edges"}},
		{"status --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"inspect batches --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"inspect generation --store DIR", 1, []string{"giantstream run"}},
		{"inspect tree --store DIR", 1, []string{"giantstream run"}},
		{"inspect embeddings --store DIR", 1, []string{"giantstream run"}},
		{"inspect node n1 --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"dlq list --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"dlq replay --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"fit --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"embed --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
		{"evaluate --store DIR", 1, []string{"no pipeline yet", "giantstream run"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := t.TempDir()
			r := run(t, strings.Fields(strings.NewReplacer("DIR", dir, "FAULTS", faults).Replace(c.args))...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d\n%s", r.code, c.code, r.stderr)
			}
			for _, s := range c.says {
				if !strings.Contains(r.stderr, s) {
					t.Errorf("does not say %q:\n%s", s, r.stderr)
				}
			}
			if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
				t.Errorf("the directory now holds %v (%v)", found, err)
			}
		})
	}
}

// The looks into a finished pipeline, and one stage after the other by hand.
func TestLooksAndStages(t *testing.T) {
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(10, 200)
	h := a.beginning()
	place := []string{"-c", config, "--store", dir}
	with := func(args ...string) []string { return slices.Concat(args, place) }
	succeed(t, slices.Concat(with("run", "--until-idle"), h.write(t, inputs))...)

	var st struct {
		Nodes       int
		Generations []struct {
			Generation int
			Status     string
		}
	}
	succeedJSON(t, &st, with("status", "--json")...)
	graph := graphOf(h)
	if st.Nodes != len(graph) || len(st.Generations) != 1 || st.Generations[0].Status != "ready" {
		t.Errorf("status is %+v, want %d nodes and a generation that is ready", st, len(graph))
	}
	const id = "n0001"
	var view struct {
		Row       struct{ Text string }
		Embedding struct{ Vector []float32 }
	}
	succeedJSON(t, &view, with("inspect", "node", id)...)
	if view.Row.Text != graph[id].text || len(view.Embedding.Vector) != 32 {
		t.Errorf("inspect node %s: %+v", id, view)
	}
	for _, look := range []struct{ args, says string }{
		{"status", "ready"},
		{"inspect batches", "shards/2/rows/"},
		{"inspect generation", "link AUC"},
		{"inspect tree", "topic"},
		{"inspect tree --live", "generation 1 and 0 rows committed since"},
		{"inspect embeddings", "generations/000001/embeddings/part-00000.parquet"},
	} {
		if out := succeed(t, with(strings.Fields(look.args)...)...); !strings.Contains(out, look.says) {
			t.Errorf("%s does not say %q:\n%s", look.args, look.says, out)
		}
	}
	if out := succeed(t, with("dlq", "list")...); out != "" {
		t.Errorf("dlq list prints %q, want nothing", out)
	}

	// A second generation by hand, with the linear encoder.
	for _, step := range []struct{ args, says string }{
		{"fit --encoder linear", "Generation 2 is building"},
		{"train", "Generation 2 is building"},
		{"embed", "Generation 2 is ready"},
	} {
		if out := succeed(t, with(strings.Fields(step.args)...)...); !strings.Contains(out, step.says) {
			t.Errorf("%s does not say %q:\n%s", step.args, step.says, out)
		}
	}
	succeed(t, with("run", "--until-idle")...)
	o := readOutcome(t, dir)
	if o.doc.Generation != 2 || o.doc.Encoder.Kind != "linear" {
		t.Errorf("the current generation is %d with the %s encoder", o.doc.Generation, o.doc.Encoder.Kind)
	}
	sameMap(t, "published embedding", withoutSeq(o.published), withoutSeq(o.embeddings))
}
