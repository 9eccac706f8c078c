package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
)

// Each run over a changing catalog processes what has changed since the last one, and no more.
func TestRunsOneAfterAnother(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	flags := []string{"run", "-c", config, "--store", dir, "--until-idle"}
	h := newAuthor(6, 200).beginning()
	link := edgeEvent{Src: "n0030", Dst: "n0031", At: epoch + 5000}
	h.edges = append(h.edges, link)
	link.At, link.Deleted = epoch+7000, true
	files := h.write(t, inputs)
	succeed(t, slices.Concat(flags, files)...)

	histories := []history{h}
	changed, deleted := "n0010", "n0020"
	for i, step := range []struct {
		what       string
		change     history
		generation int64
		rewritten  []string
	}{
		{"nothing", history{}, 1, nil},
		{"a text", history{nodes: []nodeEvent{{ID: changed, Text: "brand new words", At: epoch + 6000}}}, 2,
			[]string{changed}},
		{"a deletion", history{nodes: []nodeEvent{{ID: deleted, At: epoch + 6000, Deleted: true}}}, 3, []string{deleted}},
		{"a link less", history{edges: []edgeEvent{link}}, 4, []string{link.Src, link.Dst}},
		{"old news", history{nodes: []nodeEvent{{ID: changed, Text: "long ago", At: epoch - 1}}}, 4, nil},
	} {
		if i > 0 {
			files = step.change.write(t, filepath.Join(inputs, strconv.Itoa(i)))
		}
		histories = append(histories, step.change)
		cut := currentCut(t, openStore(t, dir))
		out := succeed(t, slices.Concat(flags, files)...)
		o := readOutcome(t, dir)
		checkGraph(t, o.rows, graphOf(histories...))
		if o.doc.Generation != step.generation {
			t.Errorf("%s: generation %d, want %d", step.what, o.doc.Generation, step.generation)
		}
		if got := rewrittenSince(t, dir, cut); !slices.Equal(got, step.rewritten) {
			t.Errorf("%s: rows of %q were written, want %q", step.what, got, step.rewritten)
		}
		if upToDate := strings.Contains(out, "Up to date"); upToDate != (step.rewritten == nil) {
			t.Errorf("%s: the report says\n%s", step.what, out)
		}
		sameMap(t, step.what+": published embedding", withoutSeq(o.published), withoutSeq(o.embeddings))
	}

	o := readOutcome(t, dir)
	withPlace(t, dir, func(p place) {
		if r, ok := p.latestPublished(t)[deleted]; !ok || !r.Deleted {
			t.Errorf("the newest record of the deleted node is %+v, want a tombstone", r)
		}
	})
	if r, ok := o.embeddings[deleted]; ok {
		t.Errorf("the deleted node has an embedding: %+v", r)
	}
	checkLog(t, dir)
}

// rewrittenSince returns the ids of all rows committed since a cut, ascending.
func rewrittenSince(t *testing.T, dir string, cut commitlog.Cut) []string {
	t.Helper()
	store := openStore(t, dir)
	var ids []string
	for shard, seq := range cut {
		for m, err := range commitlog.Manifests(t.Context(), store, shard, seq) {
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range m.Objects {
				ids = append(ids, rowIDs(t, store, o)...)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// The results depend neither on the number of shards nor on the number of processors.
func TestSameResultsOnAnyMachine(t *testing.T) {
	t.Parallel()
	inputs := t.TempDir()
	a := newAuthor(7, 300)
	histories := []history{a.beginning(), a.later()}
	var want *outcome
	for _, setting := range []struct{ shards, processors int }{{3, 2}, {3, 1}, {3, 7}, {1, 2}, {4, 2}} {
		t.Run(fmt.Sprintf("%d shards, %d processors", setting.shards, setting.processors), func(t *testing.T) {
			dir := t.TempDir()
			config := writeFile(t, filepath.Join(t.TempDir(), "pipeline.yaml"),
				strings.Replace(smallConfig, "shards: 3", fmt.Sprint("shards: ", setting.shards), 1))
			for i, h := range histories {
				files := h.write(t, filepath.Join(inputs, strconv.Itoa(i)))
				cmd := command(t, slices.Concat([]string{"run", "-c", config, "--store", dir, "--until-idle"}, files)...)
				cmd.Env = append(cmd.Env, fmt.Sprint("GOMAXPROCS=", setting.processors))
				if r := finish(t, cmd); r.code != 0 {
					t.Fatalf("exit code %d\n%s", r.code, r.stderr)
				}
			}
			got := readOutcome(t, dir)
			anyShard(&got)
			if want == nil {
				checkGraph(t, got.rows, graphOf(histories...))
				want = &got
			}
			checkSame(t, got, *want)
		})
	}
}

// anyShard removes from an outcome what depends on the number of shards: positions in the store.
func anyShard(o *outcome) {
	for _, records := range []map[string]embedding.Record{o.embeddings, o.published} {
		for id, r := range records {
			r.Shard = 0
			records[id] = r
		}
	}
}

// Ctrl-C ends a run in order, with a code of its own, and the same command continues where it
// stopped.
func TestInterruptedRunResumes(t *testing.T) {
	t.Parallel()
	inputs := t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	h := newAuthor(8, 300).beginning()
	args := slices.Concat([]string{"run", "-c", config, "--until-idle"}, h.write(t, inputs))
	undisturbed := t.TempDir()
	succeed(t, append(args, "--store", undisturbed)...)
	want := readOutcome(t, undisturbed)

	for _, after := range []string{"backfill nodes", "number", "dataset"} {
		t.Run("after "+after, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, append(args, "--store", dir)...)
			code := p.wait(syscall.SIGINT, func(stage string) <-chan time.Time {
				if stage != after {
					return nil
				}
				return time.After(0)
			})
			if code != 130 || !strings.Contains(p.log(), "interrupted; the next run goes on") {
				t.Errorf("exit code %d, want 130\n%s", code, p.log())
			}
			succeed(t, append(args, "--store", dir)...)
			checkLog(t, dir)
			checkSame(t, readOutcome(t, dir), want)
		})
	}
}

// The service makes its first generation by itself, and shuts down cleanly on request.
func TestServiceStopsInOrder(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	h := newAuthor(9, 200).beginning()
	p := start(t, slices.Concat([]string{"run", "-c", config, "--store", dir}, h.write(t, inputs))...)
	code := p.wait(syscall.SIGTERM, func(stage string) <-chan time.Time {
		if stage != "evaluate" {
			return nil
		}
		return time.After(0)
	})
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, p.log())
	}
	out := succeed(t, "run", "-c", config, "--store", dir, "--until-idle")
	o := readOutcome(t, dir)
	if o.doc.Generation != 1 {
		t.Errorf("generation %d, want 1\n%s", o.doc.Generation, out)
	}
	checkGraph(t, o.rows, graphOf(h))
	checkLog(t, dir)
}
