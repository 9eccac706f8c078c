package examples_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/sink/storetest"
)

// interpreter is the Python that the examples run with.
func interpreter() string { return cmp.Or(os.Getenv("GIANTSTREAM_PYTHON"), "python3") }

// needs skips the test if Python has not all of the modules.
func needs(t *testing.T, modules string) {
	t.Helper()
	// They are found, and not imported: that takes seconds of each test.
	find := "import importlib.util as u; assert all(map(u.find_spec, '" + modules + "'.split(', ')))"
	if out, err := exec.CommandContext(t.Context(), interpreter(), "-c", find).CombinedOutput(); err != nil {
		t.Skipf("%s has not all of %s (examples/README.md): %v: %.200s",
			interpreter(), modules, err, bytes.TrimSpace(out))
	}
}

// python runs a script and returns what it prints.
func python(t *testing.T, args ...string) string {
	t.Helper()
	cmd := command(t, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// command is a script that is not started yet. It finds giantstream_torch of this tree, installed or
// not.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	torch, err := filepath.Abs("../train/torch")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter(), args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore", "OMP_NUM_THREADS=1",
		"PYTHONPATH="+torch)
	return cmd
}

const (
	nodes  = 240
	topics = 4
)

const config = `
pipeline: examples
shards: 2
window: {changes: 100, time: 200ms}
featurize:
  projection_dim: 48
  tree: {leaf_size: 4, branching: 4}
embedding: {dim: 32}
evaluate: {probe_rates: [0.5]}
http: {listen: ""}
`

// store is a finished pipeline, made once for all tests. Its nodes are in four topics, which are
// their classes.
var store = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "giantstream-examples-*")
	if err != nil {
		return "", err
	}
	r := rand.New(rand.NewPCG(1, 1))
	var n, e bytes.Buffer
	for i := range nodes {
		text := ""
		for range 10 {
			text += fmt.Sprintf("topic%dword%d ", i%topics, r.IntN(40))
		}
		fmt.Fprintf(&n, `{"id": "n%03d", "text": %q, "label": "topic %d"}`+"\n", i, text, i%topics)
		for range 3 {
			if j := (i + topics*(1+r.IntN(20))) % nodes; j != i {
				fmt.Fprintf(&e, `{"src": "n%03d", "dst": "n%03d"}`+"\n", i, j)
			}
		}
	}
	for name, data := range map[string][]byte{"nodes.jsonl": n.Bytes(), "edges.jsonl": e.Bytes(),
		"pipeline.yaml": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return dir, err
		}
	}
	cmd := exec.Command("go", "run", "../cmd/giantstream", "run", "--until-idle", "-c",
		filepath.Join(dir, "pipeline.yaml"),
		"--store", filepath.Join(dir, "store"), "--nodes", filepath.Join(dir,
			"nodes.jsonl"), "--edges", filepath.Join(dir, "edges.jsonl"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// made says whether a test has asked for the store, so that nothing is made in order to be removed.
var made bool

func TestMain(m *testing.M) {
	code := m.Run()
	if made {
		dir, _ := store()
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// storeOf returns the store for an example that needs modules, and skips the test before one is
// made in vain.
func storeOf(t *testing.T, modules string) string {
	t.Helper()
	needs(t, modules)
	made = true
	dir, err := store()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "store")
}

func TestSQL(t *testing.T) {
	dir := storeOf(t, "duckdb")
	query := func(args ...string) [][]string {
		out := python(t, slices.Concat([]string{"sql/run.py", dir}, args, []string{"--csv"})...)
		table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return table[1:]
	}
	newest := query("newest")
	if len(newest) != 20 || !slices.ContainsFunc(newest, func(r []string) bool {
		return r[0] == "n000" &&
			r[1] == "topic 0"
	}) {
		t.Errorf("newest rows: %v", newest)
	}
	same := 0
	for _, r := range query("nearest", "--node", "n001") {
		if r[2] == "topic 1" {
			same++
		}
	}
	if same < 9 {
		t.Errorf("%d of the 10 nearest to n001 are of its topic", same)
	}
	labels := map[string]int{} // per level
	for _, r := range query("clusters", "--generation", "1") {
		var n int
		if _, err := fmt.Sscan(r[2], &n); err != nil {
			t.Fatal(err)
		}
		labels[r[0]] += n
	}
	if len(labels) < 2 || labels["0"] != labels["1"] || labels["0"] < nodes*9/10 {
		t.Errorf("labels per level: %v", labels)
	}
}

// Feast has the same embeddings offline and online, those of an item's topic nearest to it.
func TestFeast(t *testing.T) {
	t.Setenv("GIANTSTREAM_PYTHON", cmp.Or(os.Getenv("GIANTSTREAM_FEAST"), interpreter()))
	// The folder of the example is a module of the name feast, too, and has nothing in it.
	out := python(t, "feast/features.py", storeOf(t, "feast.types"), "1", t.TempDir(), "n001", "n005", "n002")
	var items []struct {
		ID              string
		Offline, Online []float64
		Generation      int
	}
	lines := strings.Split(strings.TrimSpace(out), "\n") // Feast prints what it loads
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &items); err != nil || len(items) != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	cosine := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	for _, x := range items {
		if len(x.Online) != 32 || x.Generation != 1 || !slices.Equal(x.Offline, x.Online) ||
			math.Abs(cosine(x.Online, x.Online)-1) > 1e-5 {
			t.Errorf("%+v", x)
		}
	}
	if first := items[0].Online; cosine(first, items[1].Online) < cosine(first, items[2].Online)+0.2 {
		t.Errorf("n001 is not nearest to n005, of its topic: %+v", items)
	}
}

// The index takes both formats and deletions, and continues where it stands.
func TestSink(t *testing.T) {
	const topic = "embeddings"
	needs(t, "confluent_kafka, numpy")
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // in a directory that goes
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.EnsureTopics(t.Context(), client.TopicSpec{Name: topic, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	publish := func(format embeddingtopic.Format, records ...embedding.Record) {
		t.Helper()
		p := embeddingtopic.NewPublisher(c, topic, format)
		if err := p.Publish(context.WithoutCancel(t.Context()), records); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	index := filepath.Join(t.TempDir(), "index.db")
	follow := func(want string) {
		t.Helper()
		out := python(t, "sink/consume.py", "follow", "--brokers", b.Addrs()[0], "--topic", topic, "--index", index,
			"--until-end")
		if strings.TrimSpace(out) != want {
			t.Errorf("follow prints %q, want %q", out, want)
		}
	}
	record := func(id string, generation int64, v ...float32) embedding.Record {
		return embedding.Record{NodeID: id, Generation: generation, Vector: v, Seq: 1, EventTime: 1}
	}
	search := func(want string) {
		t.Helper()
		if out := python(t, "sink/consume.py", "search", "--index", index, "a"); out != want {
			t.Errorf("nearest to a: %q, want %q", out, want)
		}
	}

	publish("json", record("a", 1, 1, 0), record("b", 1, 0.8, 0.6), record("c", 1, 0, 1), record("old", 0, 1, 0))
	follow("4 records applied")
	search("0.8000\tb\n0.0000\tc\n")

	gone := embedding.Record{NodeID: "b", Generation: 1, Deleted: true, Seq: 2}
	publish("binary", record("c", 1, 0.6, 0.8), gone)
	follow("2 records applied")
	search("0.6000\tc\n")
	follow("0 records applied")

	// Vectors of all types, in both formats.
	wide := record("c", 1, 0.6, 0.8)
	for _, typ := range []embedding.Type{embedding.Float16, embedding.Int8} {
		narrow := embedding.Format{Type: typ}.Narrow(wide)
		x, y := float64(narrow.Vector[0]), float64(narrow.Vector[1])
		for _, format := range []embeddingtopic.Format{embeddingtopic.JSON, embeddingtopic.Binary} {
			publish(format, narrow)
			follow("1 records applied")
			search(fmt.Sprintf("%.4f\tc\n", x/math.Hypot(x, y)))
		}
	}
}

// The trainer learns, writes what our reader takes, and a training that was killed ends as one that
// was not.
func TestPyTorch(t *testing.T) {
	generation := filepath.Join(storeOf(t, "torch, pyarrow, numpy"), "generations", "000001")
	out := t.TempDir()
	train := training{generation: generation}
	report, stopped := plain(t, generation, 1), filepath.Join(out, "stopped")
	if n := len(report.Losses); n != 4 || report.Losses[n-1] > report.Losses[0]*0.8 {
		t.Errorf("losses %v", report.Losses)
	}
	train.kill(t, stopped, 1, 28)
	if resumed := train.run(t, stopped, 1); !strings.Contains(resumed.Output, "resumes in epoch 1 at batch 10") {
		t.Errorf("the second run prints %q", resumed.Output)
	}
	sameBytes(t, filepath.Join(report.dir, "checkpoint.pt"), filepath.Join(stopped, "checkpoint.pt"))
	a, b := readEmbeddings(t, report.dir), readEmbeddings(t, stopped)
	if len(a) != report.Rows {
		t.Errorf("%d embeddings of %d rows", len(a), report.Rows)
	}
	var within, across, n float64
	for id, v := range a {
		if !slices.Equal(v, b[id]) {
			t.Fatalf("after a resume the embedding of %s is %v, want %v", id, b[id], v)
		}
		var i, j int
		if _, err := fmt.Sscanf(id, "n%d", &i); err != nil {
			t.Fatal(err)
		}
		j = (i + topics*5) % nodes
		if w, ok := a[fmt.Sprintf("n%03d", j)]; ok {
			within, n = within+cosine(v, w), n+1
		}
		if w, ok := a[fmt.Sprintf("n%03d", (j+1)%nodes)]; ok {
			across += cosine(v, w)
		}
	}
	if within/n < across/n+0.3 {
		t.Errorf("mean cosine %.2f within topics, %.2f across", within/n, across/n)
	}
	python(t, "pytorch/train.py", generation, "--out", filepath.Join(out, "hinge"), "--objective", "hinge", "--dim",
		"8", "--epochs", "1")
}

// readEmbeddings reads what a trainer wrote below dir with our own reader.
func readEmbeddings(t *testing.T, dir string) map[string][]float32 {
	t.Helper()
	s, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float32{}
	for info, err := range s.List(t.Context(), "embeddings/", "") {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range embedding.ReadParquet(t.Context(), s, storetest.Ref(t, s, info.Key)) {
			if err != nil {
				t.Fatal(err)
			}
			shard := client.Partition([]byte(r.NodeID), 2)
			if r.Generation != 1 || r.Shard != shard || r.Seq < 1 || r.EventTime == 0 {
				t.Fatalf("record %+v", r)
			}
			out[r.NodeID] = r.Vector
		}
	}
	return out
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i]*b[i]), aa+float64(a[i]*a[i]), bb+float64(b[i]*b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// Every method of both scripts learns topics that the embeddings and the texts tell, by a random split and by one in a
// file.
func TestPyG(t *testing.T) {
	dir := filepath.Join(storeOf(t, "torch_geometric, torch, pyarrow, numpy"), "generations", "000001")
	var file strings.Builder
	file.WriteString("id,split\n")
	for i := range nodes {
		fmt.Fprintf(&file, "n%03d,%s\n", i, []string{"train", "valid", "test", "test", "test"}[i/topics%5])
	}
	split := filepath.Join(t.TempDir(), "split.csv")
	if err := os.WriteFile(split, []byte(file.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		learn  []string
		stages map[string]int
	}{
		{"classify", []string{"pyg/classify.py"},
			[]string{"mlp", "sage", "saint", "sgc", "revgat", "revgat+kd", "sagn+sle", "gamlp+rlu"},
			map[string]int{"revgat+kd": 2, "sagn+sle": 3, "gamlp+rlu": 4}},
		{"classify, official split", []string{"pyg/classify.py", "--methods", "sage,sagn+sle", "--split", split},
			[]string{"sage", "sagn+sle"}, map[string]int{"sagn+sle": 3}},
		{"autoencode", []string{"pyg/autoencode.py"}, []string{"giant", "gae", "vgae", "dgi", "graphzoom"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append(slices.Clone(c.args), dir, "--seeds", "1", "--steps", "40")
			if c.stages != nil {
				args = append(args, "--hidden", "32")
			}
			out := python(t, args...)
			var report map[string]struct {
				Accuracy                float64
				Train, Validation, Test int // of "nodes"
				Stages                  []struct {
					LearnedFrom []int `json:"learned_from"`
				}
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			for _, m := range c.learn {
				least := max(0.7, report["majority"].Accuracy+0.3)
				if report[m].Accuracy < least {
					t.Errorf("%s has accuracy %.2f, want %.2f; chance is %.2f", m, report[m].Accuracy, least, 1.0/topics)
				}
				stages := report[m].Stages
				if len(stages) != c.stages[m] {
					t.Errorf("%s has %d stages, want %d", m, len(stages), c.stages[m])
				}
				for i, s := range stages {
					first, last := i == 0, i == len(stages)-1
					if n := s.LearnedFrom[0]; first && n != 0 || last && n == 0 {
						t.Errorf("stage %d of %s learned from %d predictions", i, m, n)
					}
				}
			}
			if n := report["nodes"]; slices.Contains(c.args, split) &&
				(n.Train != nodes/5 || n.Validation != nodes/5 || n.Test != nodes*3/5) {
				t.Errorf("of %d nodes, the parts of the split have %d, %d and %d", nodes, n.Train, n.Validation, n.Test)
			}
			t.Logf("%v", report)
		})
	}
}

// The methods' own tests, which are in Python.
func TestPyGMethods(t *testing.T) {
	needs(t, "torch_geometric, torch, pyarrow, numpy")
	run := func(t *testing.T, args ...string) {
		t.Helper()
		cmd := command(t, args...)
		cmd.Dir = "pyg"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	t.Run("tests", func(t *testing.T) { run(t, "-m", "unittest", "test_methods") })
	t.Run("types", func(t *testing.T) {
		needs(t, "mypy")
		run(t, "-m", "mypy", "--cache-dir", os.DevNull)
	})
}
