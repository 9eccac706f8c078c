package iceberg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	random "math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/iceberg"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
)

// TestRealCatalog is TestIndex on the reference REST catalog (cmd/dev/iceberg/server). At the end other readers must
// see what the topic holds: DuckDB and PyIceberg, as far as GIANTSTREAM_ICEBERG_PYTHON has them.
func TestRealCatalog(t *testing.T) {
	uri := os.Getenv("GIANTSTREAM_REAL_ICEBERG")
	if uri == "" {
		t.Skip("GIANTSTREAM_REAL_ICEBERG is not set: cmd/dev/iceberg/server starts a catalog")
	}
	readers := readers(t, "duckdb", "pyiceberg")
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		ident := table.Identifier{"test", plainName(t)}
		c, err := rest.NewCatalog(t.Context(), "test", uri)
		if err != nil {
			t.Fatal(err)
		}
		load := func() table.Metadata {
			tab, err := c.LoadTable(context.Background(), ident) // also when the test ends
			if err != nil {
				return nil
			}
			return tab.Metadata()
		}
		process := func() vectordb.Index {
			return iceberg.New(iceberg.Options{Table: ident, Places: iceberg.Memory{}, Bytes: 10_000,
				Attributes: vectordbtest.Attributes,
				Catalog:    func(context.Context) (iceberg.Catalog, error) { return c, nil }, Store: openDir})
		}
		target := vectordbtest.Target{Open: process, Exact: true, Vectorless: true, Kept: iceberg.KeptFiles,
			Attributes: true,
			Rows: func() map[string]vectordbtest.Seen {
				meta := load()
				if meta == nil || meta.CurrentSnapshot() == nil {
					return nil
				}
				store, err := openDir(context.Background(), meta.Location())
				if err != nil {
					t.Fatal(err)
				}
				return seen(t, meta, meta.CurrentSnapshot().SnapshotID, store, vectordbtest.Attributes)
			},
			Tables: func() int { return branches(load()) }}
		t.Cleanup(func() {
			if want := target.Rows(); !t.Failed() {
				for _, r := range readers {
					if diff := vectordbtest.Differ(r.read(t, uri, ident), want); diff != "" {
						t.Errorf("%s reads other rows:\n%s", r.name, diff)
					}
				}
			}
		})
		return target
	})
}

// TestRealMaintenance: Spark compacts the table and expires snapshots under a sink that lives on, and between two that
// do not.
func TestRealMaintenance(t *testing.T) {
	uri, python := os.Getenv("GIANTSTREAM_REAL_ICEBERG"), os.Getenv("GIANTSTREAM_ICEBERG_PYTHON")
	if uri == "" || python == "" || os.Getenv(sparkJar) == "" {
		t.Skipf("GIANTSTREAM_REAL_ICEBERG, GIANTSTREAM_ICEBERG_PYTHON or %s is not set", sparkJar)
	}
	ident := table.Identifier{"test", plainName(t)}
	c, err := rest.NewCatalog(t.Context(), "test", uri)
	if err != nil {
		t.Fatal(err)
	}
	topic := vectordbtest.NewTopic(random.New(random.NewPCG(1, 5)), 2, true, nil)
	start := func() *vectordb.Follower {
		f := vectordb.New(vectordb.Options{Topic: "embeddings", TopicID: "1", Partitions: 2, Log: slog.Default(),
			Ends: func(context.Context) ([]int64, error) { return topic.Ends(), nil },
			Index: iceberg.New(iceberg.Options{Table: ident, Places: iceberg.Memory{}, Log: slog.Default(),
				Attributes: vectordbtest.Attributes,
				Catalog:    func(context.Context) (iceberg.Catalog, error) { return c, nil }, Store: openDir})})
		if err := f.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f
	}
	spark := startScript(t, python)
	f := start()
	for round := range 3 {
		for range 4 {
			for range 6 {
				topic.Grow()
			}
			if topic.Settle(); round == 2 {
				continue
			}
			follow(t, f, topic)
		}
		follow(t, f, topic)
		if round == 2 {
			break
		}
		spark.ask(t, new([]any), "compact", uri, strings.Join(ident, "."))
		if round == 1 {
			f = start()
		}
	}
	want, _ := topic.Compacted(vectordbtest.Target{Vectorless: true, Attributes: true})
	var found []map[string]any
	spark.ask(t, &found, "pyspark", uri, strings.Join(ident, "."), readColumns())
	if diff := vectordbtest.Differ(asSeen(t, "pyspark", found), want); diff != "" {
		t.Errorf("pyspark reads other rows than the topic's:\n%s", diff)
	}
	for _, r := range readers(t, "duckdb", "pyiceberg") {
		if diff := vectordbtest.Differ(r.read(t, uri, ident), want); diff != "" {
			t.Errorf("%s reads other rows than the topic's:\n%s", r.name, diff)
		}
	}
}

// follow hands over what the topic has got, and commits it.
func follow(t *testing.T, f *vectordb.Follower, topic *vectordbtest.Topic) {
	t.Helper()
	for p, records := range topic.Records {
		if err := f.Handle(t.Context(), p, records[max(0, f.Next(p)):], int64(len(records))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Settle(t.Context()), f.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// plainName is the test's name in letters and digits, and of this run.
func plainName(t *testing.T) string {
	return "r" + strconv.FormatInt(time.Now().UnixNano(), 36) + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(t.Name()))
}

func openDir(_ context.Context, location string) (sink.Store, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	return dirstore.Open(u.Path)
}

func branches(meta table.Metadata) (n int) {
	for _, r := range maps.Collect(meta.Refs()) {
		if r.SnapshotRefType == table.BranchRef {
			n++
		}
	}
	return n
}

// script is testdata/read.py, which takes one task after another.
type script struct {
	in     io.Writer
	out    *json.Decoder
	stderr *strings.Builder
}

func startScript(t *testing.T, python string) *script {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, "testdata/read.py")
	s := &script{stderr: &strings.Builder{}}
	cmd.Stderr = s.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // the test's context has ended it
	})
	s.in, s.out = in, json.NewDecoder(out)
	return s
}

// ask decodes what the script prints for a task.
func (s *script) ask(t *testing.T, into any, task ...string) {
	t.Helper()
	_, err := fmt.Fprintln(s.in, strings.Join(task, " "))
	if err == nil {
		err = s.out.Decode(into)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", task[0], err, s.stderr.String())
	}
}

// reader is another program that reads tables.
type reader struct{ name, python string }

// sparkJar is the variable that names iceberg-spark-runtime.
const sparkJar = "GIANTSTREAM_ICEBERG_SPARK_JAR"

// readers returns those that there are.
func readers(t *testing.T, names ...string) (out []reader) {
	python := os.Getenv("GIANTSTREAM_ICEBERG_PYTHON")
	if python == "" {
		t.Log("GIANTSTREAM_ICEBERG_PYTHON is not set: nothing is read back by DuckDB and PyIceberg")
		return nil
	}
	for _, name := range names {
		if exec.CommandContext(t.Context(), python, "-c", "import "+name).Run() != nil {
			t.Logf("%s has no %s", python, name)
			continue
		}
		out = append(out, reader{name, python})
	}
	return slices.Clip(out)
}

// read returns the rows of the table's main branch.
func (r reader) read(t *testing.T, uri string, ident table.Identifier) map[string]vectordbtest.Seen {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(context.Background(), r.python, "testdata/read.py", r.name, uri, strings.Join(ident, "."),
		readColumns())
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", r.name, err, stderr.String())
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return asSeen(t, r.name, rows)
}

// readColumns are those that other programs read.
func readColumns() string {
	columns := "node_id,generation,seq,embedding"
	for _, a := range vectordbtest.Attributes {
		columns += "," + a.Name
	}
	return columns
}

func asSeen(t *testing.T, reader string, rows []map[string]any) map[string]vectordbtest.Seen {
	t.Helper()
	out := map[string]vectordbtest.Seen{}
	for _, object := range rows {
		data, err := json.Marshal(object)
		var row struct {
			NodeID          string `json:"node_id"`
			Embedding       []float32
			Generation, Seq int64
		}
		if err = errors.Join(err, json.Unmarshal(data, &row)); err != nil {
			t.Fatal(err)
		}
		if _, twice := out[row.NodeID]; twice {
			t.Errorf("%s reads two rows of %s", reader, row.NodeID)
		}
		out[row.NodeID] = vectordbtest.Seen{Vector: vectordbtest.Literal(row.Embedding), Generation: row.Generation,
			Seq: row.Seq, Attributes: vectordbtest.ShowObject(object)}
	}
	return out
}
