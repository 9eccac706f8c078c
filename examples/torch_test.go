package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"giantstream/internal/freeport"
	"giantstream/train/numeric"
)

// The package's own tests, which are in Python.
func TestTorchPackage(t *testing.T) {
	needs(t, "torch, pyarrow, numpy")
	run := func(args ...string) {
		t.Helper()
		cmd := command(t, args...)
		cmd.Dir = "../train/torch"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	t.Run("tests", func(*testing.T) { run("-m", "unittest", "discover", "-t", ".", "-s", "tests") })
	t.Run("types", func(t *testing.T) {
		needs(t, "mypy")
		run("-m", "mypy", "--cache-dir", os.DevNull)
	})
}

// Python's order of an epoch is the one that docs/format/dataset.md describes, here in Go, on a
// training set of ours.
func TestTorchOrder(t *testing.T) {
	const seed, epoch, window, batch = 1 << 63, 3, 2, 7
	generation := filepath.Join(storeOf(t, "torch, pyarrow, numpy"), "generations", "000001")
	groups := rowGroups(t, filepath.Join(generation, "dataset"))
	var want []string
	r := numeric.NewRand(seed, epoch)
	order := r.Perm(len(groups))
	for k := 0; k*window < len(order); k++ {
		var rows []string
		for _, g := range order[k*window : min((k+1)*window, len(order))] {
			rows = append(rows, groups[g]...)
		}
		r := numeric.NewRand(seed, epoch, uint64(k))
		for _, i := range r.Perm(len(rows)) {
			want = append(want, rows[i])
		}
	}
	got := strings.Fields(python(t, "-c", fmt.Sprintf(`
from giantstream_torch import Order, StreamingDataset
dataset = StreamingDataset(%q, Order(%d, seed=%d, window=%d, drop_last=False))
dataset.seek(%d)
for batch in dataset:
    print(*batch.texts("node_id"))
`, generation, batch, uint64(seed), window, epoch)))
	if len(want) < nodes*9/10 || !slices.Equal(got, want) {
		t.Errorf("%d rows in the order %.10v…, want %d rows in the order %.10v…", len(got), got, len(want), want)
	}
}

// rowGroups are the ids in every row group that is not empty, in the order of the parts.
func rowGroups(t *testing.T, dir string) (groups [][]string) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, "part-*.parquet"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("parts in %s: %v, %v", dir, parts, err)
	}
	for _, part := range parts {
		data, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range file.RowGroups() {
			rows := parquet.NewGenericRowGroupReader[struct {
				ID string `parquet:"node_id"`
			}](g)
			read := make([]struct {
				ID string `parquet:"node_id"`
			}, g.NumRows())
			if n, err := rows.Read(read); n != len(read) {
				t.Fatalf("%s: %d rows of %d: %v", part, n, len(read), err)
			}
			var ids []string
			for _, row := range read {
				ids = append(ids, row.ID)
			}
			if len(ids) > 0 {
				groups = append(groups, ids)
			}
		}
	}
	return groups
}

// training runs pytorch/train.py: 4 epochs of 15 steps, with a checkpoint every 5.
type training struct {
	generation string
	options    []string
}

// trained is what a run reports.
type trained struct {
	Rows   int
	Losses []float64 // the mean of each epoch
	Output string
}

// start starts a process per rank, with the environment that torchrun sets. Debian's torchrun does
// not work with its Python 3.11, so the tests go without it.
func (tr training) start(t *testing.T, out string, ranks int, more ...string) (processes []*exec.Cmd) {
	t.Helper()
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		cmd := command(t, slices.Concat([]string{"pytorch/train.py", tr.generation, "--out", out, "--dim", "16",
			"--batch", "16", "--epochs", "4", "--every", "5"}, tr.options, more)...)
		if ranks > 1 {
			cmd.Env = append(cmd.Env, fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("LOCAL_RANK=%d", rank),
				fmt.Sprintf("WORLD_SIZE=%d", ranks), "MASTER_ADDR="+host, "MASTER_PORT="+port, "GLOO_SOCKET_IFNAME=lo")
		}
		cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	return processes
}

// run trains to the end and returns what rank 0 reports.
func (tr training) run(t *testing.T, out string, ranks int, more ...string) (report trained) {
	t.Helper()
	processes := tr.start(t, out, ranks, more...)
	for rank, p := range processes {
		if err := p.Wait(); err != nil {
			t.Errorf("rank %d of %d: %v\n%s", rank, ranks, err, p.Stderr)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, p := range processes[1:] {
		if p.Stdout.(*bytes.Buffer).Len() > 0 {
			t.Errorf("another rank than 0 prints %q", p.Stdout)
		}
	}
	report.Output = strings.TrimSpace(processes[0].Stdout.(*bytes.Buffer).String())
	if err := json.Unmarshal([]byte(report.Output[strings.LastIndex(report.Output, "\n")+1:]), &report); err != nil {
		t.Fatalf("%v in %s", err, report.Output)
	}
	return report
}

// plainRun is a training without options that was not disturbed.
type plainRun struct {
	dir string
	trained
}

// plainRuns are by the number of ranks. Several tests compare one with runs of their own.
var plainRuns = map[int]plainRun{}

// plain returns a training without options, which the first test that asks makes.
func plain(t *testing.T, generation string, ranks int) plainRun {
	t.Helper()
	if r, ok := plainRuns[ranks]; ok {
		return r
	}
	base, err := store()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "plain-*")
	if err != nil {
		t.Fatal(err)
	}
	r := plainRun{dir, training{generation: generation}.run(t, dir, ranks)}
	plainRuns[ranks] = r
	return r
}

// kill trains and has every rank end as by a crash after a number of steps.
func (tr training) kill(t *testing.T, out string, ranks, steps int) {
	t.Helper()
	for rank, p := range tr.start(t, out, ranks, "--kill-after", fmt.Sprint(steps)) {
		// Where one is dead before another, its peers may fail on the lost connection instead.
		if err := p.Wait(); err == nil {
			t.Fatalf("rank %d of %d was not killed after %d steps\n%s", rank, ranks, steps, p.Stdout)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "checkpoint.pt")); err != nil {
		t.Fatal(err)
	}
}

func sameBytes(t *testing.T, want, got string) {
	t.Helper()
	a, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Errorf("%s (%d bytes) is not %s (%d bytes)", got, len(b), want, len(a))
	}
}

// Two processes end with the bytes of one: the weights, the state of the optimizer and the embeddings.
func TestPyTorchRanks(t *testing.T) {
	generation := filepath.Join(storeOf(t, "torch, pyarrow, numpy"), "generations", "000001")
	for name, options := range map[string][]string{
		"float32": nil,
		"streams": {"--streams", "2", "--verify"},
		"bf16":    {"--precision", "bf16"},
	} {
		t.Run(name, func(t *testing.T) {
			train := training{generation, options}
			out := t.TempDir()
			one, two := filepath.Join(out, "one"), filepath.Join(out, "two")
			if options == nil {
				r := plain(t, generation, 1)
				r.learns(t)
				one, two = r.dir, plain(t, generation, 2).dir
			} else {
				train.run(t, one, 1).learns(t)
				train.run(t, two, 2)
			}
			sameRun(t, one, two)
		})
	}
}

// A run that is killed within an epoch with one process and then with two, and ends with one, ends with the bytes of
// two processes that were not disturbed.
func TestPyTorchRanksResume(t *testing.T) {
	train := training{generation: filepath.Join(storeOf(t, "torch, pyarrow, numpy"), "generations", "000001")}
	whole, killed := plain(t, train.generation, 2), filepath.Join(t.TempDir(), "killed")
	whole.learns(t)
	train.kill(t, killed, 1, 8)
	train.kill(t, killed, 2, 28)
	report := train.run(t, killed, 1)
	if want := "resumes in epoch 1 at batch 10 with 1 ranks"; !strings.Contains(report.Output, want) {
		t.Errorf("the third run prints %q, not %q", report.Output, want)
	}
	sameRun(t, whole.dir, killed)
}

// sameRun compares what two runs have left.
func sameRun(t *testing.T, want, got string) {
	t.Helper()
	sameBytes(t, filepath.Join(want, "checkpoint.pt"), filepath.Join(got, "checkpoint.pt"))
	parts, err := filepath.Glob(filepath.Join(want, "embeddings", "*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("embeddings in %s: %v, %v", want, parts, err)
	}
	for _, part := range parts {
		sameBytes(t, part, filepath.Join(got, "embeddings", filepath.Base(part)))
	}
}

// learns says whether the loss falls.
func (r trained) learns(t *testing.T) {
	t.Helper()
	if n := len(r.Losses); n != 4 || !(r.Losses[n-1] < r.Losses[0]) {
		t.Errorf("losses %v", r.Losses)
	}
}
