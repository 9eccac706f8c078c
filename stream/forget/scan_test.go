package forget

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
)

const (
	secretID   = "P1"
	secretText = "a quill that nobody else has\nred"
)

// Each kind of object is opened, and what is in it is found; what only looks like it is not.
func TestScanStore(t *testing.T) {
	for _, c := range []struct {
		name  string
		put   func(t *testing.T, store sink.Store, key string)
		kind  string
		where []string
	}{
		{"a node's row", rowsOf(rows.Row{NodeID: "P1", Text: "x"}), "parquet",
			[]string{"id in column node_id", "id in the footer and the indexes"}},
		{"the rows of others", rowsOf(rows.Row{NodeID: "P0", Text: "like P1"}, rows.Row{NodeID: "P12", Text: "x",
			Labels: []string{"P1-b", "P10"}}), "parquet", nil},
		{"a label in a long list", rowsOf(rows.Row{NodeID: "P0", Labels: []string{"P0", "P1", "P2"}}), "parquet",
			[]string{"id in column labels.list.element"}},
		{"a text", rowsOf(rows.Row{NodeID: "P0", Text: secretText}), "parquet", []string{"text in column text"}},
		{"a line of a text in another", rowsOf(rows.Row{NodeID: "P0", Text: "with a quill that nobody else has."}),
			"parquet", []string{"text in column text"}},
		{"a short line alone", rowsOf(rows.Row{NodeID: "P0", Text: "red"}), "parquet", nil},
		{"a name in a document", plain(`{"of": {"P1": 7}}`), "JSON", []string{"id in JSON"}},
		{"a sentence in a document", plain(`["node \"P1\" is gone"]`), "JSON", []string{"id in JSON"}},
		{"a number in a document", plain(`{"id": 4711}`), "JSON", []string{"id in JSON"}},
		{"a record in a document", plain(`{"value": "` + base64.StdEncoding.EncodeToString(
			[]byte(`{"text": "a quill that nobody else has"}`)) + `"}`), "JSON", []string{"text in JSON"}},
		{"another id in a document", plain(`{"id": "P1-b", "n": 14711}`), "JSON", nil},
		{"escaped in a document", plain(`{"id": "\u0050\u0031"}`), "JSON", []string{"id in JSON"}},
		{"gzip", func(t *testing.T, store sink.Store, key string) {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write([]byte("one P1 two")); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			put(t, store, key, b.Bytes())
		}, "compressed", []string{"id in compressed bytes"}},
		{"zstd", func(t *testing.T, store sink.Store, key string) {
			w, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			put(t, store, key, w.EncodeAll([]byte("one P1 two"), nil))
		}, "compressed", []string{"id in compressed bytes"}},
		{"bytes that begin like zstd", plain(zstdMagic + "\xff\xff P1"), "raw", []string{"id in raw bytes"}},
		{"unknown bytes", plain("\x00\x02P1\x07"), "raw", []string{"id in raw bytes"}},
		{"unknown bytes across two pieces", plain(strings.Repeat("x", 1<<20-5) + secretText + "y"), "raw",
			[]string{"text in raw bytes"}},
		{"JSON that is cut off", plain(`{"id": "P1"`), "raw", []string{"id in raw bytes"}},
		{"nothing", plain(""), "raw", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &memstore.Store{}
			c.put(t, store, "generations/000001/thing")
			s := NewScanner(Targets{IDs: []string{secretID, "4711"}, Texts: []string{secretText}})
			if err := s.Store(t.Context(), store, nil, nil); err != nil {
				t.Fatal(err)
			}
			r := s.Report()
			var where []string
			for _, f := range r.Findings {
				where = append(where, f.Where...)
			}
			if !slices.Equal(where, c.where) || r.Kinds[c.kind] != 1 || r.Objects != 1 {
				t.Errorf("found %q in %v, want %q in a %s", where, r.Kinds, c.where, c.kind)
			}
		})
	}
}

// A damaged Parquet file is an error: what is in it is not known.
func TestScanDamage(t *testing.T) {
	store := &memstore.Store{}
	put(t, store, "x", []byte("PAR1 and then nothing PAR1"))
	if err := NewScanner(Targets{IDs: []string{"a"}}).Store(t.Context(), store, nil, nil); err == nil {
		t.Error("a damaged file was passed over")
	}
}

// Files on this machine are opened too: also a batch that a broker has compressed, between others.
func TestScanFolder(t *testing.T) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	// Letters of unequal frequency are entropy-coded: no literal stays as it was.
	letters, random := make([]byte, 4000), rand.New(rand.NewPCG(1, 1))
	for i := range letters {
		letters[i] = "eeeeettttaaaooinshr "[random.IntN(20)]
	}
	frame := w.EncodeAll(append(letters, " P1"...), nil)
	if bytes.Contains(frame, []byte("P1")) {
		t.Fatal("the frame shows the id")
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"partitions/nodes-0/0.dat":  append(append([]byte("head"), frame...), "tail"...),
		"partitions/nodes-0/9.dat":  append(bytes.Repeat([]byte{'x'}, 1<<20-2), frame...),
		"partitions/nodes-1/0.dat":  append([]byte(zstdMagic), w.EncodeAll([]byte("one P2 two"), nil)...),
		"partitions/nodes-1/17.dat": []byte("\x07P1"),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := NewScanner(Targets{IDs: []string{secretID, "nodes-1"}})
	for _, dir := range []string{dir, filepath.Join(dir, "absent")} {
		if err := s.Folder(t.Context(), dir, BrokerLog, nil); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for _, f := range s.Report().Findings {
		rel, err := filepath.Rel(dir, f.Place)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, filepath.ToSlash(rel)+": "+strings.Join(f.Where, ", "))
	}
	want := []string{"partitions/nodes-0/0.dat: id in compressed bytes",
		"partitions/nodes-0/9.dat: id in compressed bytes", "partitions/nodes-1/17.dat: id in raw bytes"}
	if !slices.Equal(found, want) || s.Report().Kinds[BrokerLog] != 4 {
		t.Errorf("found %q, want %q", found, want)
	}
}

// versioned is a store with older versions.
type versioned struct {
	memstore.Store
	old map[string]string
	err error
}

func (v *versioned) Versions(context.Context) iter.Seq2[sink.Version, error] {
	return func(yield func(sink.Version, error) bool) {
		for id := range v.old {
			if !yield(sink.Version{Info: sink.Info{Key: "a"}, ID: id}, nil) {
				return
			}
		}
		if v.err != nil {
			yield(sink.Version{}, v.err)
		}
	}
}

func (v *versioned) OpenVersion(ctx context.Context, version sink.Version) (sink.Object, error) {
	old := &memstore.Store{}
	if err := sink.PutBytes(ctx, old, version.Key, []byte(v.old[version.ID])); err != nil {
		return nil, err
	}
	return old.Open(ctx, version.Key)
}

// What a bucket has kept is found there, and a bucket that does not say is not taken for one that has kept nothing.
func TestScanVersions(t *testing.T) {
	store := &versioned{old: map[string]string{"v1": `["P1"]`, "v2": `["P2"]`}}
	s := NewScanner(Targets{IDs: []string{secretID}})
	if err := s.Versions(t.Context(), store, nil); err != nil {
		t.Fatal(err)
	}
	r := s.Report()
	if len(r.Findings) != 1 || r.Findings[0].Place != "a, version v1" || r.Findings[0].Kind != OlderVersion ||
		r.Kinds[OlderVersion] != 2 || len(r.Unread) > 0 {
		t.Errorf("%+v", r)
	}
	store.err = errors.New("no right to list versions")
	if err := s.Versions(t.Context(), store, nil); err != nil || len(s.Report().Unread) != 1 {
		t.Errorf("%+v, %v", s.Report(), err)
	}
}

func rowsOf(all ...rows.Row) func(*testing.T, sink.Store, string) {
	return func(t *testing.T, store sink.Store, key string) { rowstest.Put(t, store, key, all) }
}

func plain(data string) func(*testing.T, sink.Store, string) {
	return func(t *testing.T, store sink.Store, key string) { put(t, store, key, []byte(data)) }
}

func put(t *testing.T, store sink.Store, key string, data []byte) {
	t.Helper()
	if err := sink.PutBytes(t.Context(), store, key, data); err != nil {
		t.Fatal(err)
	}
}

// topics are topics of one partition.
type topics map[string][]Record

func (all topics) Partitions(_ context.Context, topic string) (int, error) {
	if topic == "refused" {
		return 0, errors.New("no right to read it")
	}
	return min(1, len(all[topic])), nil
}

func (all topics) Records(_ context.Context, topic string, _ int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range all[topic] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestScanTopics(t *testing.T) {
	in := topics{
		"nodes": {{Offset: 4, Key: []byte("P0"), Value: []byte(`{"id": "P0"}`)},
			{Offset: 5, Key: []byte("P1"), Value: []byte(`{"id": "P1"}`)}, {Offset: 7, Key: []byte("P1")},
			{Offset: 9, Key: []byte("P2")}},
		"mirror":  {{Key: []byte("P0"), Value: append([]byte("\x02\x01\x07"), "P1"...)}},
		"letters": {{Headers: [][]byte{[]byte("dlq-message"), []byte(`of "P1"`)}}},
		"others":  {{Key: []byte("P10"), Value: []byte(`{"like": "P1-b"}`)}},
	}
	s := NewScanner(Targets{IDs: []string{secretID}})
	for _, topic := range []string{"nodes", "mirror", "letters", "others", "absent"} {
		if err := s.Topic(t.Context(), in, topic, topic, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []Finding{
		{Place: "nodes/0", Kind: "nodes", Where: []string{"id in keys", "id in values"}, IDs: 1, First: 5, Last: 7},
		{Place: "mirror/0", Kind: "mirror", Where: []string{"id in values"}, IDs: 1},
		{Place: "letters/0", Kind: "letters", Where: []string{"id in headers"}, IDs: 1},
	}
	equal := func(a, b Finding) bool {
		return a.Place == b.Place && slices.Equal(a.Where, b.Where) && a.IDs == b.IDs &&
			a.First == b.First && a.Last == b.Last
	}
	if got := s.Report(); !slices.EqualFunc(got.Findings, want, equal) || got.Records != 7 {
		t.Errorf("%+v", got)
	}
	if err := s.Topic(t.Context(), in, "refused", "", nil); err == nil {
		t.Error("a topic that cannot be read was passed over")
	}
}

// words is a Vocabulary of lines that begin with "words".
type words struct{}

func (words) Owned(r io.Reader) ([]string, bool, error) {
	data, err := io.ReadAll(r)
	all := strings.Fields(string(data))
	if err != nil || len(all) == 0 || all[0] != "words" {
		return nil, false, err
	}
	return all[1:], true, nil
}

func TestScanVocabulary(t *testing.T) {
	store := &memstore.Store{}
	put(t, store, "a", []byte("words zyx"))
	put(t, store, "b", []byte("words"))
	put(t, store, "c", []byte("weights P1"))
	s := NewScanner(Targets{IDs: []string{secretID}, Vocabulary: words{}})
	if err := s.Store(t.Context(), store, nil, nil); err != nil {
		t.Fatal(err)
	}
	r := s.Report()
	if len(r.Findings) != 2 || r.Findings[0].Owned != 1 || r.Findings[1].Kind != "raw" || r.Kinds["vocabulary"] != 2 {
		t.Errorf("%+v", r)
	}
}
