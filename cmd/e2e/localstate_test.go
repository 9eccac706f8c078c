package e2e_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Whatever happens to the files of the local state between two runs, the next run ends well, and its
// graph is that of all changes.
func TestDamagedStateIsBuiltAgain(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	flags := []string{"run", "-c", config, "--store", dir, "--until-idle"}
	a, rng := newAuthor(9, 120), rand.New(rand.NewPCG(9, 9))
	h := a.beginning()
	histories := []history{h}
	succeed(t, slices.Concat(flags, h.write(t, inputs))...)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		did := damageStates(t, filepath.Join(dir, "local", "state"), rng)
		change := history{nodes: []nodeEvent{{ID: a.id(round), Text: fmt.Sprintf("text of round %d", round),
			At: epoch + 9000 + int64(round)}}}
		histories = append(histories, change)
		succeed(t, slices.Concat(flags, change.write(t, filepath.Join(inputs, fmt.Sprint(round))))...)
		checkGraph(t, readOutcome(t, dir).rows, graphOf(histories...))
		checkLog(t, dir)
		if t.Failed() {
			t.Fatalf("round %d: %q", round, did)
		}
	}
}

// damageStates changes a file of every shard's state, and returns what it did.
func damageStates(t *testing.T, dir string, rng *rand.Rand) (did []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]", "*[0-9bt]")) // all but LOCK
	if err != nil || len(files) == 0 {
		t.Fatalf("no state in %s: %v", dir, err)
	}
	byShard := map[string][]string{}
	for _, f := range files {
		byShard[filepath.Dir(f)] = append(byShard[filepath.Dir(f)], f)
	}
	for _, files := range byShard {
		path := files[rng.IntN(len(files))]
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 || rng.IntN(3) == 0 {
			did = append(did, "remove "+path)
			err = os.Remove(path)
		} else {
			at := rng.IntN(len(data))
			did = append(did, fmt.Sprintf("flip %s at %d", path, at))
			data[at] ^= 1 << rng.IntN(8)
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return did
}

// What a run leaves is for its user alone, whatever the umask: texts, ids, embeddings.
func TestFilesOfARunArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files inherit the rights of their folder")
	}
	inputs, parent := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	dir := filepath.Join(parent, "store")
	h := newAuthor(4, 60).beginning()
	cmd := command(t, slices.Concat([]string{"run", "-c", config, "--store", dir, "--until-idle"},
		h.write(t, inputs))...)
	args := append([]string{"-c", `umask 000; exec "$0" "$@"`}, cmd.Args...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"/bin/sh"}, args...)
	if r := finish(t, cmd); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	seen := map[string]int{}
	for _, root := range []string{dir, cmd.Dir} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			if root == cmd.Dir && path == root {
				return nil // the test's own
			}
			if mode := info.Mode().Perm(); mode&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			rel, _, _ := strings.Cut(strings.TrimPrefix(path, dir+"/"), "/")
			seen[rel]++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"local", "shards", "generations"} {
		if seen[part] == 0 {
			t.Errorf("nothing was looked at in %s: %v", part, seen)
		}
	}
}
