package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The next run publishes a generation that was built by hand, one stage after the other.
func TestGenerationByHand(t *testing.T) {
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	h := newAuthor(10, 200).beginning()
	with := func(args ...string) []string { return append(args, "-c", config, "--store", dir) }
	succeed(t, slices.Concat(with("run", "--until-idle"), h.write(t, inputs))...)
	for _, stage := range []string{"fit --encoder linear", "train", "embed"} {
		succeed(t, with(strings.Fields(stage)...)...)
	}
	succeed(t, with("run", "--until-idle")...)
	o := readOutcome(t, dir)
	if o.doc.Generation != 2 || o.doc.Encoder.Kind != "linear" {
		t.Errorf("the current generation is %d with the %s encoder", o.doc.Generation, o.doc.Encoder.Kind)
	}
	sameMap(t, "published embedding", withoutSeq(o.published), withoutSeq(o.embeddings))
}
