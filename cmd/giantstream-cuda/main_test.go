//go:build cuda

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// asProgram in the environment makes the test's executable the program.
const asProgram = "GIANTSTREAM_CUDA_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// A whole run trains and encodes on the device. Killed in the training and started again, it ends
// with the same bits.
func TestRunOnTheDevice(t *testing.T) {
	dir := t.TempDir()
	var nodes, edges strings.Builder
	words := []string{"router packet socket", "matrix vector tensor", "flour butter oven", "goal match league"}
	for i := range 60 {
		fmt.Fprintf(&nodes, "{\"id\": \"n%d\", \"text\": \"%s %d\"}\n", i, words[i%4], i)
		fmt.Fprintf(&edges, "{\"src\": \"n%d\", \"dst\": \"n%d\"}\n{\"src\": \"n%d\", \"dst\": \"n%d\"}\n", i,
			(i+4)%60, i, (i+8)%60)
	}
	model, err := filepath.Abs("../../train/encoders/bert/testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := func(math string) string {
		return write(math+".yaml", fmt.Sprintf("train: {encoder: bert, epochs: 4, device: cuda, gpu_math: %s, "+
			"checkpoint_every: 100ms, bert: {model: %q, max_tokens: 8, ngrams: 0}}\n", math, model))
	}
	args := []string{"run", "--nodes", write("nodes.jsonl", nodes.String()),
		"--edges", write("edges.jsonl", edges.String()), "--until-idle"}
	finish := func(store, math string) []byte {
		t.Helper()
		out, err := program(t, append(args, "-c", config(math), "--store", store)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		weights, err := os.ReadFile(filepath.Join(store, "generations/000001/encoder/bert/model.safetensors"))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return weights
	}
	want := finish(filepath.Join(dir, "whole"), "float32")

	rounded := filepath.Join(dir, "rounded")
	if bytes.Equal(finish(rounded, "bf16"), want) {
		t.Error("gpu_math: bf16 gives the weights of float32")
	}
	doc, err := os.ReadFile(filepath.Join(rounded, "generations/000001/generation.json"))
	if err != nil || !regexp.MustCompile(`"gpu_math":\s*\[\s*"bf16"\s*\]`).Match(doc) {
		t.Errorf("the document does not tell gpu_math: %v\n%s", err, doc)
	}

	store := filepath.Join(dir, "killed")
	cmd := program(t, append(args, "-c", config("float32"), "--store", store)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for killed := false; !killed; {
		select {
		case <-ended:
			t.Fatal("the training ended before it was killed")
		case <-time.After(10 * time.Millisecond):
		}
		checkpoints := filepath.Join(store, "generations/000001/tasks/encoder/00000/encoder/checkpoints/*")
		if all, _ := filepath.Glob(checkpoints); len(all) > 0 {
			killed = cmd.Process.Kill() == nil
		}
	}
	<-ended
	if !bytes.Equal(finish(store, "float32"), want) {
		t.Error("the weights of a training that was killed and resumed differ from those of one that was not")
	}
}
