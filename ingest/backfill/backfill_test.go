package backfill_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/sink"
	"giantstream/sink/memstore"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/segmentio/kafka-go"
)

var (
	now   = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	mtime = time.Date(2023, 1, 2, 3, 4, 5, 0, time.UTC)
)

func options(e *kafkatest.Env) backfill.Options {
	return backfill.Options{
		Client: e.Client, Topics: e.Topics, Mapping: kafkatest.Mapping(), Limits: kafkatest.Limits(),
		Clock: func() time.Time { return now },
	}
}

// write makes a file that was last modified at mtime.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, mtime, mtime); err != nil {
		t.Fatal(err)
	}
	return name
}

func files(t *testing.T, patterns ...string) []backfill.Input {
	t.Helper()
	in, err := backfill.Files(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func run(t *testing.T, o backfill.Options) backfill.Stats {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stats, err := backfill.Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func gz(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zst(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

type parquetNode struct {
	ID    string   `parquet:"id"`
	Text  []string `parquet:"text,list"`
	Label *string  `parquet:"label,optional"`
	Score float64  `parquet:"score"`
}

func parquetFile(t *testing.T) []byte {
	t.Helper()
	label := "x"
	var out bytes.Buffer
	w := parquet.NewGenericWriter[parquetNode](&out)
	if _, err := w.Write([]parquetNode{{"a", []string{"red", "pen"}, &label, 1.5}, {"b", nil, nil, 0}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFormats(t *testing.T) {
	lines := []byte("{\"id\":\"a\",\"text\":\"red pen\"}\r\n\n{\"id\":\"b\"}")
	plain := map[string]string{"a": `{"id":"a","text":"red pen"}`, "b": `{"id":"b"}`}
	csv := []byte("id,text,deleted\na,\"red \"\"big\"\"\npen\",\nb,,true\n")
	cells := map[string]string{"a": `{"id":"a","text":"red \"big\"\npen"}`, "b": `{"id":"b","deleted":"true"}`}
	cases := []struct {
		name    string
		content []byte
		want    map[string]string
	}{
		{"n.jsonl", lines, plain},
		{"n.ndjson", append([]byte("\xef\xbb\xbf"), lines...), plain},
		{"n.jsonl.gz", gz(t, lines), plain},
		{"n.jsonl.zst", zst(t, lines), plain},
		{"n.csv", csv, cells},
		{"n.csv.gz", gz(t, csv), cells},
		{"n.parquet", parquetFile(t), map[string]string{
			"a": `{"id":"a","text":["red","pen"],"label":"x"}`,
			"b": `{"id":"b","text":[],"label":null}`,
		}},
		{"empty.jsonl", nil, map[string]string{}},
		{"empty.csv", nil, map[string]string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := kafkatest.Start(t, 3)
			o := options(e)
			o.Nodes = files(t, write(t, filepath.Join(t.TempDir(), c.name), c.content))
			stats := run(t, o)
			got := map[string]string{}
			for _, m := range e.Read(t, "nodes") {
				got[string(m.Key)] = string(m.Value)
				if !m.Time.Equal(mtime) {
					t.Errorf("timestamp %v, want the file's %v", m.Time, mtime)
				}
				if want := client.Partition(m.Key, 3); m.Partition != want {
					t.Errorf("%s is in partition %d, want %d", m.Key, m.Partition, want)
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if stats.Nodes != int64(len(c.want)) {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

func TestEventTimeBecomesTheTimestamp(t *testing.T) {
	e := kafkatest.Start(t, 1)
	o := options(e)
	o.Mapping.Edges.EventTime = "at"
	o.Edges = files(t, write(t, filepath.Join(t.TempDir(), "e.csv"),
		[]byte("src,dst,at\na,b,2020-02-02T00:00:00Z\na,c,1580601600\na,d,-5\n")))
	run(t, o)
	want := []time.Time{time.Unix(1580601600, 0), time.Unix(1580601600, 0), time.UnixMilli(1)}
	for i, m := range e.Read(t, "edges") {
		if !m.Time.Equal(want[i]) {
			t.Errorf("%s: timestamp %v, want %v", m.Value, m.Time, want[i])
		}
	}
}

func TestBadLinesKeepTheirBytes(t *testing.T) {
	e := kafkatest.Start(t, 1)
	o := options(e)
	o.Limits.RecordBytes = 100_000
	huge := `{"id":"huge","text":"` + strings.Repeat("x", 10_000_000) + `"}`
	content := "{broken\n" + `{"text":"no id"}` + "\n" + huge + "\n\xff\xfe\n" + `{"id":"good"}` + "\n"
	name := write(t, filepath.Join(t.TempDir(), "n.jsonl.gz"), gz(t, []byte(content)))
	o.Nodes = files(t, name)
	stats := run(t, o)
	var sent []string
	for _, m := range e.Read(t, "nodes") {
		if (m.Key == nil) == (string(m.Value) == `{"id":"good"}`) {
			t.Errorf("key %q of %s", m.Key, m.Value)
		}
		sent = append(sent, string(m.Value))
	}
	if want := []string{"{broken", `{"text":"no id"}`, "\xff\xfe", `{"id":"good"}`}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	letters := e.Read(t, "dead-letters")
	if len(letters) != 1 || stats.Oversize != 1 {
		t.Fatalf("%d dead letters, stats %+v", len(letters), stats)
	}
	l, err := deadletter.Parse(letters[0])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(huge))
	if l.Origin != (deadletter.Origin{Topic: e.Topics.Nodes, File: name, Line: 3}) || l.Code != decode.RecordTooLarge ||
		l.Size != int64(len(huge)) || l.SHA256 != hex.EncodeToString(sum[:]) ||
		string(l.Value) != huge[:deadletter.CutBytes] {
		t.Errorf("letter of %s: %s, %d bytes of %d, %s", l.Origin, l.Code, len(l.Value), l.Size, l.SHA256)
	}
}

// TestDeletionsNeedNoText: what leaves out rows without text keeps deletions, and what a decoder refuses.
func TestDeletionsNeedNoText(t *testing.T) {
	e := kafkatest.Start(t, 1)
	o := options(e)
	o.Mapping.Nodes.Deleted = "gone"
	o.Nodes = files(t, write(t, filepath.Join(t.TempDir(), "n.csv"),
		[]byte("id,text,gone\na,one,\na,,\nb,,true\nc,,false\nd,,maybe\n")))
	o.Nodes[0].Read.SkipWithoutText = true
	stats := run(t, o)
	var sent []string
	for _, m := range e.Read(t, "nodes") {
		sent = append(sent, string(m.Key))
	}
	if want := []string{"a", "b", "d"}; !slices.Equal(sent, want) || stats.Skipped != 2 {
		t.Errorf("sent %q and left out %d, want %q and 2", sent, stats.Skipped, want)
	}
}

// TestIdleFilesAreNamed: a file of which nothing is sent is named, and why.
func TestIdleFilesAreNamed(t *testing.T) {
	e := kafkatest.Start(t, 1)
	o := options(e)
	o.Checkpoint = filepath.Join(t.TempDir(), "checkpoint")
	o.Limits.RecordBytes = 100
	dir := t.TempDir()
	file := func(name, content string) backfill.Input {
		in := files(t, write(t, filepath.Join(dir, name), []byte(content)))[0]
		in.Read.SkipWithoutText = true
		return in
	}
	o.Nodes = []backfill.Input{file("sent.jsonl", `{"id":"a","text":"one"}`),
		file("sent.csv", "id,text\nc,\"one\ntwo\"\nd,three\n"), file("empty.jsonl", ""),
		file("bare.csv", "id,text\na,\nb,\n"), file("bad.csv", "id,text\na,b,c\n"+strings.Repeat("x", 200)+",y\n")}
	var got []string
	for range 2 {
		stats := run(t, o)
		for _, f := range stats.Idle.Files {
			got = append(got, filepath.Base(f.Name)+": "+f.Why)
		}
		if int(stats.Idle.Count) != len(stats.Idle.Files) {
			t.Errorf("%d files sent nothing, %v are named", stats.Idle.Count, stats.Idle.Files)
		}
	}
	want := []string{"empty.jsonl: no records", "bare.csv: 2 left out without text", "bad.csv: 2 dead letters",
		"sent.jsonl: 1 read by an earlier run", "sent.csv: 2 read by an earlier run"}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("files that sent nothing: %q, want first %q", got, want)
	}
}

func TestResume(t *testing.T) {
	e := kafkatest.Start(t, 2)
	dir := t.TempDir()
	var all strings.Builder
	const n = 120_000
	for i := range n {
		fmt.Fprintf(&all, "{\"id\":%d}\n", i)
	}
	name := write(t, filepath.Join(dir, "n.jsonl"), []byte(all.String()))
	o := options(e)
	o.Checkpoint = filepath.Join(dir, "state", "backfill.json")
	o.Nodes = files(t, name)

	// The first attempt loses its input after the first checkpoint.
	broken := errors.New("cable pulled")
	cut := o
	cut.Nodes = slices.Clone(o.Nodes)
	cut.Nodes[0].Open = func(ctx context.Context) (sink.Object, error) {
		f, err := o.Nodes[0].Open(ctx)
		return failing{f, f.Size() * 3 / 4, broken}, err
	}
	if _, err := backfill.Run(t.Context(), cut); !errors.Is(err, broken) {
		t.Fatalf("first attempt: %v", err)
	}
	stats := run(t, o)
	if stats.Resumed < 50_000 || stats.Resumed+stats.Nodes != n {
		t.Errorf("second attempt: %+v, want it to go on after a checkpoint", stats)
	}
	seen := map[string]bool{}
	for _, m := range e.Read(t, "nodes") {
		seen[string(m.Key)] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d records arrived", len(seen), n)
	}
	if stats := run(t, o); stats.Nodes != 0 || stats.Resumed != n {
		t.Errorf("third run: %+v, want nothing sent", stats)
	}
	other := o
	other.Mapping.Nodes.Class = "class"
	if stats := run(t, other); stats.Nodes != n {
		t.Errorf("another mapping: %+v, want all sent again", stats)
	}
	write(t, name, []byte(`{"id":"changed"}`))
	o.Nodes = files(t, name)
	if stats := run(t, o); stats.Nodes != 1 {
		t.Errorf("changed file: %+v, want it sent", stats)
	}
}

// failing is an object that cannot be read past a byte.
type failing struct {
	sink.Object
	at  int64
	err error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= f.at {
		return f.Object.ReadAt(p, off)
	}
	n, err := f.Object.ReadAt(p[:max(f.at-off, 0)], off)
	return n, errors.Join(f.err, err)
}

func TestObjects(t *testing.T) {
	e := kafkatest.Start(t, 1)
	store := &memstore.Store{}
	for key, v := range map[string]string{"in/e1.jsonl": `{"src":"a","dst":"b"}`,
		"in/e2.jsonl": `{"src":"c","dst":"d"}`, "in/other.txt": "?"} {
		if err := store.Put(t.Context(), key, strings.NewReader(v), int64(len(v))); err != nil {
			t.Fatal(err)
		}
	}
	o := options(e)
	var err error
	if o.Edges, err = backfill.Objects(t.Context(), store, "in/*.jsonl"); err != nil {
		t.Fatal(err)
	}
	run(t, o)
	var keys []string
	for _, m := range e.Read(t, "edges") {
		keys = append(keys, string(m.Key))
	}
	if !slices.Equal(keys, []string{"a", "c"}) {
		t.Errorf("keys %q", keys)
	}
	if _, err := backfill.Objects(t.Context(), store, "out/*"); !errors.Is(err, backfill.ErrNoInput) {
		t.Errorf("no match: %v", err)
	}
}

// TestDirectoriesAreNotPassedOver: Spark writes a table as a directory whose name ends in .parquet, and
// an export may have parts in directories below. Nothing of that is left out without a word.
func TestDirectoriesAreNotPassedOver(t *testing.T) {
	dir, store := t.TempDir(), &memstore.Store{}
	for _, name := range []string{"export/a.jsonl", "export/nodes.parquet/part-0.parquet", "export/2024/05/b.jsonl"} {
		local := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(local), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, local, []byte("{}"))
		if err := store.Put(t.Context(), name, strings.NewReader("{}"), 2); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, directory := range map[string]string{
		"export": "export", "export/*": "export/2024", "export/*.parquet": "export/nodes.parquet",
		"export/nodes.parquet": "export/nodes.parquet", "*/2024/*": "export/2024/05",
		"export/*.jsonl": "", "export/nodes.parquet/*": "", "export/2024/0?/b*": "",
	} {
		_, local := backfill.Files(filepath.Join(dir, pattern))
		_, remote := backfill.Objects(t.Context(), store, pattern)
		for where, err := range map[string]error{"files": local, "objects": remote} {
			switch {
			case directory == "" && err != nil:
				t.Errorf("%s %s: %v", where, pattern, err)
			case directory != "" && (!errors.Is(err, backfill.ErrDirectory) ||
				!strings.Contains(err.Error(), directory+" is a directory")):
				t.Errorf("%s %s: error %v, want one about %s", where, pattern, err, directory)
			}
		}
	}
}

func TestUnknownFormatAndDamagedFiles(t *testing.T) {
	e := kafkatest.Start(t, 1)
	dir := t.TempDir()
	pq := parquetFile(t)
	for name, content := range map[string][]byte{
		"n.txt": []byte("?"), "n.parquet": pq[:len(pq)/2], "garbage.parquet": bytes.Repeat([]byte("PAR1"), 50),
		"n.jsonl.gz": []byte("not gzip"), "n.jsonl.zst": []byte("not zstd"),
		"cut.jsonl.gz": gz(t, []byte(`{"id":"a"}`))[:20],
	} {
		o := options(e)
		o.Nodes = files(t, write(t, filepath.Join(dir, name), content))
		if _, err := backfill.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
	}
}

func TestMessagesLargerThanABatchKeepTheirOrder(t *testing.T) {
	e := kafkatest.Start(t, 1)
	p := e.Client.NewProducer()
	big := bytes.Repeat([]byte("x"), 3<<20)
	for _, v := range [][]byte{[]byte("1"), big, []byte("3")} {
		if err := p.Send(t.Context(), kafka.Message{Topic: e.Topics.Nodes, Key: []byte("k"), Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, m := range e.Read(t, "nodes") {
		sizes = append(sizes, len(m.Value))
	}
	if !slices.Equal(sizes, []int{1, 3 << 20, 1}) {
		t.Errorf("values of %v bytes", sizes)
	}
}

// TestAFileIsItsContent: size and time do not tell files apart, and what an older version of a file
// says is counted as what it is.
func TestAFileIsItsContent(t *testing.T) {
	e := kafkatest.Start(t, 1)
	dir := t.TempDir()
	name := filepath.Join(dir, "n.jsonl")
	o := options(e)
	o.Mapping.Nodes.EventTime = "at"
	o.Checkpoint = filepath.Join(dir, "backfill.json")
	send := func(content string, at time.Time) backfill.Stats {
		write(t, name, []byte(content))
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
		o.Nodes = files(t, name)
		return run(t, o)
	}
	const red, pen = "{\"id\":\"a\",\"text\":\"red\"}\n", "{\"id\":\"a\",\"text\":\"pen\"}\n"
	for i, step := range []struct {
		content string
		at      time.Time
		want    backfill.Stats
	}{
		{red, mtime, backfill.Stats{Nodes: 1}},
		{red, mtime, backfill.Stats{Resumed: 1, Idle: backfill.IdleFiles{Count: 1,
			Files: []backfill.IdleFile{{Name: name, Why: "1 read by an earlier run"}}}}},
		{pen, mtime, backfill.Stats{Nodes: 1}},
		{pen, mtime.Add(time.Hour), backfill.Stats{Nodes: 1}},
		{red, mtime, backfill.Stats{Nodes: 1, Stale: 1, StaleFiles: []string{name}}},
		{red, mtime.Add(time.Minute), backfill.Stats{Nodes: 1, Stale: 1, StaleFiles: []string{name}}},
		{"{\"id\":\"a\",\"at\":1}", mtime, backfill.Stats{Nodes: 1}},
		{red, mtime.Add(2 * time.Hour), backfill.Stats{Nodes: 1}},
	} {
		got := send(step.content, step.at)
		got.Fields = nil
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
}

func TestCheckpointOfFormat1(t *testing.T) {
	e := kafkatest.Start(t, 1)
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "n.jsonl"), []byte(`{"id":"a"}`))
	o := options(e)
	o.Checkpoint = filepath.Join(dir, "backfill.json")
	o.Nodes = files(t, name)
	run(t, o)
	b, err := os.ReadFile(o.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`(?m)^.*"(sha256|newest)".*\n`).ReplaceAll(b, nil)
	old = bytes.Replace(old, []byte(`"format": 2`), []byte(`"format": 1`), 1)
	old = regexp.MustCompile(`,(\s*})`).ReplaceAll(old, []byte("$1"))
	write(t, o.Checkpoint, old)
	if stats := run(t, o); stats.Nodes != 0 || stats.Resumed != 1 {
		t.Errorf("%+v, want nothing sent; the checkpoint is\n%s", stats, old)
	}
}

// TestCutOffFilesKeepTheirBeginning: what a truncated file has is sent, and the error names the file.
func TestCutOffFilesKeepTheirBeginning(t *testing.T) {
	e := kafkatest.Start(t, 1)
	var all bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		fmt.Fprintf(&all, "{\"id\":\"n%d\",\"text\":\"%x\"}\n", i, r.Uint64())
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"cut.jsonl.gz": gz(t, all.Bytes()), "cut.jsonl.zst": zst(t, all.Bytes())} {
		before := len(e.Read(t, "nodes"))
		o := options(e)
		o.Nodes = files(t, write(t, filepath.Join(dir, name), data[:len(data)*3/4]))
		_, err := backfill.Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%s: %v, want an error that names the file and says that it is cut off", name, err)
		}
		if n := len(e.Read(t, "nodes")) - before; n < 10_000 {
			t.Errorf("%s: %d records of three quarters of the file arrived", name, n)
		}
	}
}
