package forget

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"iter"
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
			if err := s.Store(t.Context(), store, nil); err != nil {
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
	if err := NewScanner(Targets{IDs: []string{"a"}}).Store(t.Context(), store, nil); err == nil {
		t.Error("a damaged file was passed over")
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
		return a.Place == b.Place && slices.Equal(a.Where, b.Where) && a.IDs == b.IDs && a.First == b.First && a.Last == b.Last
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
	if err := s.Store(t.Context(), store, nil); err != nil {
		t.Fatal(err)
	}
	r := s.Report()
	if len(r.Findings) != 2 || r.Findings[0].Owned != 1 || r.Findings[1].Kind != "raw" || r.Kinds["vocabulary"] != 2 {
		t.Errorf("%+v", r)
	}
}
