package schedulers_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"giantstream/cmd/e2e/internal/program"
)

// binary is the program under test.
var binary string

// here is this package's folder, where the other processes do not run.
var here, _ = os.Getwd()

// longest is more than any example takes on a busy machine.
const longest = 3 * time.Minute

func TestMain(m *testing.M) {
	serveFake() // if that is what this process was started for
	os.Exit(program.Test(m, &binary))
}

// succeed runs the program and wants exit code 0. It returns what the program printed.
func succeed(t *testing.T, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Stderr = t.TempDir(), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("giantstream %q: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// graph writes 120 nodes of four topics, with links within them, and returns the flags that name the files.
func graph(t *testing.T, dir string) []string {
	t.Helper()
	const n, topics = 120, 4
	r := rand.New(rand.NewPCG(1, 1))
	var nodes, edges bytes.Buffer
	for i := range n {
		fmt.Fprintf(&nodes, `{"id": "n%03d", "label": "topic %d", "text": "`, i, i%topics)
		for range 10 {
			fmt.Fprintf(&nodes, "topic%dword%d ", i%topics, r.IntN(40))
		}
		nodes.WriteString("\"}\n")
		for range 3 {
			fmt.Fprintf(&edges, `{"src": "n%03d", "dst": "n%03d"}`+"\n", i, (i+topics*(1+r.IntN(20)))%n)
		}
	}
	return []string{"--nodes", writeFile(t, filepath.Join(dir, "nodes.jsonl"), nodes.String()),
		"--edges", writeFile(t, filepath.Join(dir, "edges.jsonl"), edges.String())}
}
