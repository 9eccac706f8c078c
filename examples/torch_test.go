package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
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

// Two processes learn what one learns of the joint batches.
func TestPyTorchRanks(t *testing.T) {
	generation := filepath.Join(storeOf(t, "torch, pyarrow, numpy"), "generations", "000001")
	for _, c := range []struct {
		name    string
		options []string
		// tolerance of an epoch's loss, relative. Sums of float32 are added in another order, which is a
		// few times 1e-8 in the mean loss; bf16 rounds what backpropagates to 8 bits before ranks add it.
		tolerance float64
	}{
		{"float32", nil, 1e-6},
		{"streams", []string{"--streams", "2", "--verify"}, 1e-6},
		{"bf16", []string{"--precision", "bf16"}, 1e-3},
	} {
		t.Run(c.name, func(t *testing.T) {
			train := training{generation, c.options}
			out := t.TempDir()
			one, two := filepath.Join(out, "one"), filepath.Join(out, "two")
			joint := train.run(t, one, 1)
			sameLosses(t, joint, train.run(t, two, 2), c.tolerance)
			if a, b := readEmbeddings(t, one), readEmbeddings(t, two); len(a) == 0 || len(a) != len(b) {
				t.Errorf("%d embeddings of one process, %d of two", len(a), len(b))
			}
		})
	}
}

// Two processes that were killed within an epoch end with the bytes of two that were not. With one,
// two and one processes in turn, a run has the losses of one that was not disturbed.
func TestPyTorchRanksResume(t *testing.T) {
	train := training{generation: filepath.Join(storeOf(t, "torch, pyarrow, numpy"), "generations", "000001")}
	out := t.TempDir()
	whole, killed, elastic := filepath.Join(out, "whole"), filepath.Join(out, "killed"), filepath.Join(out, "elastic")
	resume := func(dir string, ranks int) trained {
		t.Helper()
		report := train.run(t, dir, ranks)
		if want := fmt.Sprintf("resumes in epoch 1 at batch 10 with %d ranks", ranks); !strings.Contains(report.Output, want) {
			t.Errorf("the second run prints %q, not %q", report.Output, want)
		}
		return report
	}
	undisturbed := train.run(t, whole, 2)
	train.kill(t, killed, 2, 28)
	resume(killed, 2)
	sameBytes(t, filepath.Join(whole, "checkpoint.pt"), filepath.Join(killed, "checkpoint.pt"))

	train.kill(t, elastic, 1, 8)
	train.kill(t, elastic, 2, 28)
	sameLosses(t, undisturbed, resume(elastic, 1), 1e-6)
}

func sameLosses(t *testing.T, want, got trained, tolerance float64) {
	t.Helper()
	if len(want.Losses) != 4 || len(got.Losses) != 4 {
		t.Fatalf("losses %v, want %v", got.Losses, want.Losses)
	}
	for i, w := range want.Losses {
		apart := math.Abs(got.Losses[i]-w) / w
		t.Logf("epoch %d: loss %.9f and %.9f, %.1e apart", i+1, w, got.Losses[i], apart)
		if !(apart <= tolerance) {
			t.Errorf("epoch %d: losses %v and %v are %.1e apart, more than %.0e", i+1, w, got.Losses[i], apart, tolerance)
		}
	}
}
