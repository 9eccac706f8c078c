package examples_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/internal/freeport"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/s3store"
)

const bucket = "giantstream"

// serveS3 starts a server of S3, and has Python, and the store that it returns, find it by the
// environment.
func serveS3(t *testing.T) sink.Store {
	t.Helper()
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://" + addr, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "giantstream", "AWS_SECRET_ACCESS_KEY": "giantstream-dev",
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	program := filepath.Join(t.TempDir(), "s3")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../cmd/e2e", "build", "-o", program,
		"./s3").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.CommandContext(t.Context(), program, "-dir", t.TempDir(), "-listen", addr, "-bucket", bucket)
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	var log bytes.Buffer
	server.Stderr = &log
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended by then
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
	}
	if lines.Text() != "ready" {
		t.Fatalf("the S3 server is not ready (%v)\n%s", lines.Err(), log.Bytes())
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // so that no line stops the server; it ends with it
	s, err := s3store.Open(t.Context(), bucket, "a/prefix",
		s3store.Options{Endpoint: "http://" + addr, PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copyTo puts all that is in a directory into a store.
func copyTo(t *testing.T, s sink.Store, dir string) {
	t.Helper()
	from, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range from.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(info.Key)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), info.Key, bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
}

// From a bucket, SQL and the trainer give what they give from a directory.
func TestFromS3(t *testing.T) {
	dir := storeOf(t, "duckdb_extension_httpfs, duckdb_extension_aws, torch, pyarrow, numpy")
	copyTo(t, serveS3(t), dir)
	at := fmt.Sprintf("s3://%s/a/prefix", bucket)

	t.Run("SQL", func(t *testing.T) {
		// The packages bring what DuckDB would fetch.
		python(t, "-c", "from duckdb_extensions import import_extension as i; i('httpfs'), i('aws')")
		for _, query := range [][]string{{"newest"}, {"nearest", "--node", "n001"}, {"clusters"}} {
			ask := func(store string) string {
				return python(t, slices.Concat([]string{"sql/run.py", store}, query, []string{"--csv"})...)
			}
			local, remote := ask(dir), ask(at)
			if strings.Count(local, "\n") < 5 || remote != local {
				t.Errorf("%s gives\n%swant\n%s", query, remote, local)
			}
		}
	})
	t.Run("PyTorch", func(t *testing.T) {
		train := func(store string) map[string][]float32 {
			out := t.TempDir()
			python(t, "pytorch/train.py", store+"/generations/000001", "--out", out, "--dim", "8", "--batch", "16",
				"--epochs", "1")
			return readEmbeddings(t, out)
		}
		local, remote := train(dir), train(at)
		if len(local) == 0 || !maps.EqualFunc(local, remote, slices.Equal[[]float32]) {
			t.Errorf("%d embeddings from the bucket, %d from the directory, or not the same ones",
				len(remote), len(local))
		}
	})
}
