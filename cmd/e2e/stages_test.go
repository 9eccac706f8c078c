package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The next run with the same settings publishes a generation that was built by hand, one stage after the other. With
// others, it makes one of its own.
func TestGenerationByHand(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	h := newAuthor(10, 200).beginning()
	with := func(args ...string) []string { return append(args, "-c", config, "--store", dir) }
	succeed(t, slices.Concat(with("run", "--until-idle"), h.write(t, inputs))...)
	for _, stage := range []string{"build --until dataset --encoder linear", "build --until encoder", "build"} {
		succeed(t, with(strings.Fields(stage)...)...)
	}
	succeed(t, with("run", "--until-idle", "--encoder", "linear")...)
	o := readOutcome(t, dir)
	if o.doc.Generation != 2 || o.doc.Encoder.Kind != "linear" {
		t.Errorf("the current generation is %d with the %s encoder", o.doc.Generation, o.doc.Encoder.Kind)
	}
	sameMap(t, "published embedding", withoutSeq(o.published), withoutSeq(o.embeddings))
	succeed(t, with("run", "--until-idle")...)
	if o := readOutcome(t, dir); o.doc.Generation != 3 || o.doc.Encoder.Kind != "hybrid" {
		t.Errorf("afterwards the current generation is %d with the %s encoder", o.doc.Generation, o.doc.Encoder.Kind)
	}
}
