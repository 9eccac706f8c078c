package icebergsink

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"giantstream/cmd/internal/sinks"
	"giantstream/config"
	"giantstream/sink/dirstore"
	"giantstream/sink/rows"
	"giantstream/stream/rowtable/rowtabletest"
)

// TestRealRows: the table of rows as a process has it, in the reference REST catalog, with files on the disk and in S3.
// DuckDB, PyIceberg and Spark read what the commit log shows, as far as they are there.
func TestRealRows(t *testing.T) {
	uri, python := os.Getenv("GIANTSTREAM_REAL_ICEBERG"), os.Getenv("GIANTSTREAM_ICEBERG_PYTHON")
	if uri == "" || python == "" {
		t.Skip("GIANTSTREAM_REAL_ICEBERG or GIANTSTREAM_ICEBERG_PYTHON is not set")
	}
	name := "rows_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	t.Run("file", func(t *testing.T) {
		testRealRows(t, uri, python, name, "", "duckdb", "pyiceberg", "pyspark")
	})
	t.Run("s3", func(t *testing.T) {
		bucket := os.Getenv("GIANTSTREAM_REAL_S3_BUCKET")
		if bucket == "" {
			t.Skip("GIANTSTREAM_REAL_S3 is not set: cmd/dev/s3/server starts a server")
		}
		testRealRows(t, uri, python, name+"_s3", "s3://"+bucket+"/iceberg/"+name, "duckdb", "pyiceberg")
	})
}

func testRealRows(t *testing.T, uri, python, name, location string, readers ...string) {
	dir := t.TempDir()
	store, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := rowtabletest.New(t, store, rand.New(rand.NewPCG(2, 6)), 2)
	cfg := config.Default()
	cfg.Store, cfg.HTTP.Listen = dir, ""
	cfg.S3.Endpoint, cfg.S3.PathStyle = os.Getenv("GIANTSTREAM_REAL_S3"), true
	i := &cfg.Sinks.Iceberg
	i.URI, i.Namespace, i.Rows, i.Location, i.CommitInterval = uri, "process", name, location, 50*time.Millisecond
	for range 5 {
		for n := range 20 {
			p.Commit(t, n%2)
		}
		p.Compact(t)
		err := followRows(t.Context(), sinks.RowsOptions{Config: &cfg, UntilCaughtUp: true, Log: slog.Default()})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, reader := range readers {
		switch {
		case reader == "pyspark" && os.Getenv("GIANTSTREAM_ICEBERG_SPARK_JAR") == "":
			t.Log("GIANTSTREAM_ICEBERG_SPARK_JAR is not set: Spark reads nothing back")
			continue
		case exec.CommandContext(t.Context(), python, "-c", "import "+reader).Run() != nil:
			t.Logf("%s has no %s", python, reader)
			continue
		}
		var found []struct {
			NodeID string `json:"node_id"`
			Text   string
			Class  string
			Labels []string
			Seq    int64

			Ends    []string    `json:"link_ends"`
			Kinds   []string    `json:"link_kinds"`
			Weights []float32   `json:"link_weights"`
			Times   []time.Time `json:"link_times"`
		}
		readBy(t, python, &found, reader, uri, "process."+name,
			"node_id,text,class,labels,seq,link_ends,link_kinds,link_weights,link_times")
		got := map[string]rows.Committed{}
		for _, r := range found {
			if _, twice := got[r.NodeID]; twice {
				t.Errorf("%s reads two rows of %s", reader, r.NodeID)
			}
			row := rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: r.Labels, EventTime: r.Seq,
				LinkEnds: r.Ends, LinkKinds: r.Kinds, LinkWeights: r.Weights}
			for _, at := range r.Times {
				row.LinkTimes = append(row.LinkTimes, at.UnixMicro())
			}
			got[r.NodeID] = rows.Committed{Row: row, Seq: r.Seq}
		}
		if diff := rowtabletest.Differ(got, p.RowsAt(t, p.Cut())); diff != "" {
			t.Errorf("%s reads other rows than the log's: %s", reader, diff)
		}
	}
}
