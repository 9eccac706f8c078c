package heads

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

// python is the interpreter that PyTorch is asked of.
func python() string { return cmp.Or(os.Getenv("GIANTSTREAM_PYTHON"), "python3") }

// TestAgreesWithPyTorchGeometric trains every head on the sample graph here and
// with PyTorch Geometric, on the same embeddings and splits: the means lie
// within one standard deviation (between splits, the smaller of the two).
func TestAgreesWithPyTorchGeometric(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for minutes where PyTorch is slow")
	}
	if out, err := exec.Command(python(), "-W", "ignore", "-c",
		"import torch, torch_geometric").CombinedOutput(); err != nil {
		t.Skipf("%s has not both torch and torch_geometric: %v\n%s", python(), err, out)
	}
	t.Setenv("GIANTSTREAM_DATA", "../../../cmd")
	g := graphtest.Shared(t, "sample")
	const dim, splits = 64, 3
	d := Data{Vectors: textVectors(t, g, dim), Dim: dim, Neighbours: g.Neighbours, Classes: g.Classes}
	names, label := d.labels()
	// Full batches, as PyTorch Geometric takes them, and a narrow layer, since each epoch goes through all nodes.
	o := Options{Batch: g.Len(), Hidden: 64}
	task := map[string]any{"nodes": g.Len(), "dim": dim, "classes": len(names)}
	var parts []Split
	for seed := range uint64(splits) {
		s, err := ByRate(g.Classes, 0.1, 0.1, seed)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, s)
	}
	rates := map[Kind]float64{}
	for _, k := range kinds {
		rates[k] = o.withDefaults(k).Rate
	}
	used := o.withDefaults(MLP)
	task["splits"] = parts
	task["options"] = map[string]any{"hidden": used.Hidden, "dropout": used.Dropout, "rates": rates,
		"decay":  used.Decay,
		"epochs": used.Epochs, "patience": used.Patience, "hops": used.Hops}
	theirs := torchReports(t, task, d, label)

	for _, k := range kinds {
		var accuracy, f1, theirAccuracy, theirF1 []float64
		for seed, s := range parts {
			o.Seed = uint64(seed)
			r, err := Train(t.Context(), k, d, s, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			accuracy, f1 = append(accuracy, r.Accuracy), append(f1, r.MacroF1)
			theirAccuracy, theirF1 = append(theirAccuracy, theirs[k][seed].Accuracy), append(theirF1,
				theirs[k][seed].MacroF1)
		}
		for _, c := range []struct {
			what         string
			ours, theirs []float64
		}{{"accuracy", accuracy, theirAccuracy}, {"macro F1", f1, theirF1}} {
			m, s := meanAndDeviation(c.ours)
			tm, ts := meanAndDeviation(c.theirs)
			t.Logf("%s, %s: %.4f ± %.4f, PyTorch Geometric %.4f ± %.4f", k, c.what, m, s, tm, ts)
			if math.Abs(m-tm) > min(s, ts) {
				t.Errorf("%s: %s %.4f ± %.4f, PyTorch Geometric %.4f ± %.4f: more than a standard deviation apart",
					k, c.what, m, s, tm, ts)
			}
		}
	}
}

// textVectors are the LSA embeddings of g's texts.
func textVectors(t *testing.T, g *train.Graph, dim int) []float32 {
	t.Helper()
	fitter, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	fitter.AddAll(g.Texts, 2)
	v, err := fitter.Fit()
	if err != nil {
		t.Fatal(err)
	}
	x := v.TransformAll(g.Texts, 2)
	p, err := projection.Fit(x, dim, projection.Options{Sample: 2000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	z := p.ApplyAll(x, 2)
	numeric.NormalizeRows(z, p.Dim())
	return z
}

type scores struct {
	Accuracy float64 `json:"accuracy"`
	MacroF1  float64 `json:"macro_f1"`
}

// torchReports has PyTorch Geometric train on the task.
func torchReports(t *testing.T, task map[string]any, d Data, label []int32) map[Kind][]scores {
	t.Helper()
	dir := t.TempDir()
	var from, to []int32
	for i := range d.Neighbours.Rows {
		for _, j := range d.Neighbours.Row(i).Index {
			from, to = append(from, j), append(to, int32(i))
		}
	}
	description, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]any{
		"task.json": description, "vectors.f32": d.Vectors, "labels.i32": label, "edges.i32": append(from, to...),
	} {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = binary.Write(f, binary.LittleEndian, data)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(python(), "-W", "ignore", "testdata/pyg.py", dir)
	// More threads gain nothing on so small a graph, and wait for each other in loops.
	command.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("pyg.py: %v", err)
	}
	reports := map[Kind][]scores{}
	if err := json.Unmarshal(out, &reports); err != nil {
		t.Fatal(err)
	}
	return reports
}

func meanAndDeviation(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(deviation)
}
