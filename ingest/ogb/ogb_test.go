package ogb_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"giantstream/ingest/ogb"
)

// write makes the files of a download. Names that end in .gz are compressed.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, err := w.Write(data)
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// npy returns an array as numpy.save writes it.
func npy(t *testing.T, descr, shape string, values any) []byte {
	t.Helper()
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	for _, v := range []any{uint16(len(header)), []byte(header), values} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// npz returns arrays as numpy.savez_compressed writes them.
func npz(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range arrays {
		w, err := z.Create(name + ".npy")
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// arxiv is a download of ogbn-arxiv with four papers.
func arxiv() map[string]string {
	return map[string]string{
		"raw/edge.csv.gz":                "0,1\n2,1\n3,0\n",
		"raw/num-node-list.csv.gz":       "4\n",
		"raw/num-edge-list.csv.gz":       "3\n",
		"raw/node-feat.csv.gz":           "0.1,0.2\n0.1,0.2\n0.1,0.2\n0.1,0.2\n",
		"raw/node-label.csv.gz":          "4\n5\n28\n4\n",
		"raw/node_year.csv.gz":           "2013\n2015\n2014\n2018\n",
		"split/time/train.csv.gz":        "0\n2\n",
		"split/time/valid.csv.gz":        "1\n",
		"split/time/test.csv.gz":         "3\n",
		"mapping/nodeidx2paperid.csv.gz": "node idx,paper id\n0,9657784\n1,39886162\n2,116214155\n3,121432379\n",
		"titleabs.tsv": "paper id\ttitle\tabs\n" +
			"121432379\tFourth\tAbout four.\n" +
			"77\tNot a node\tOf another graph.\n" +
			"9657784\tEvasion attacks\tIn security-sensitive applications.\n" +
			"a line without paper\n" +
			"39886162\tHow hard is it?\t \n",
	}
}

const arxivNodes = `{"id":"0","text":"Evasion attacks\nIn security-sensitive applications.",` +
	`"label":"4","year":2013,"paper_id":"9657784"}
{"id":"1","text":"How hard is it?","label":"5","year":2015,"paper_id":"39886162"}
{"id":"2","text":"","label":"28","year":2014,"paper_id":"116214155"}
{"id":"3","text":"Fourth\nAbout four.","label":"4","year":2018,"paper_id":"121432379"}
`

const arxivEdges = `{"src":"0","dst":"1"}
{"src":"2","dst":"1"}
{"src":"3","dst":"0"}
`

func read(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		in = z
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestImport(t *testing.T) {
	nan := float32(math.NaN())
	papers := map[string]string{
		"raw/data.npz": npz(t, map[string][]byte{
			"edge_index":     npy(t, "<i8", "(2, 3)", []int64{0, 2, 3, 1, 1, 0}),
			"num_nodes_list": npy(t, "<i8", "(1,)", []int64{4}),
			"num_edges_list": npy(t, "<i8", "(1,)", []int64{3}),
			"node_feat":      npy(t, "<f4", "(4, 1)", []float32{1, 2, 3, 4}),
			"node_year":      npy(t, "<i8", "(4, 1)", []int64{2013, 2015, 2014, 2018}),
		}),
		"raw/node-label.npz": npz(t, map[string][]byte{
			"node_label": npy(t, "<f4", "(4, 1)", []float32{4, nan, 28, nan})}),
		"split/time/train.csv.gz":        "0\n",
		"split/time/valid.csv.gz":        "2\n",
		"split/time/test.csv.gz":         "",
		"mapping/nodeidx2paperid.csv.gz": arxiv()["mapping/nodeidx2paperid.csv.gz"],
	}
	with := func(files map[string]string, more map[string]string) map[string]string {
		out := map[string]string{}
		for _, m := range []map[string]string{files, more} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	paperNodes := `{"id":"0","text":"Zero\nNone.","label":"4","year":2013,"paper_id":"9657784"}
{"id":"1","text":"One","year":2015,"paper_id":"39886162"}
{"id":"2","text":"Two.","label":"28","year":2014,"paper_id":"116214155"}
{"id":"3","text":"","year":2018,"paper_id":"121432379"}
`
	paperStats := ogb.Stats{Nodes: 4, Edges: 3, Train: 1, Valid: 1, WithoutText: 1, WithoutClass: 2}
	for _, tc := range []struct {
		what, name string
		files      map[string]string
		nodes      string
		split      string
		stats      ogb.Stats
	}{
		{"arxiv", "ogbn-arxiv", arxiv(), arxivNodes, "id,split\n0,train\n2,train\n1,valid\n3,test\n",
			ogb.Stats{Nodes: 4, Edges: 3, Train: 2, Valid: 1, Test: 1, WithoutText: 1, UnknownTexts: 1, BadTexts: 1}},
		{"products", "ogbn-products", map[string]string{
			"raw/edge.csv.gz":                  "0,1\n2,1\n3,0\n",
			"raw/num-node-list.csv.gz":         "4\n",
			"raw/num-edge-list.csv.gz":         "3\n",
			"raw/node-label.csv.gz":            "0\n1\n2\n2\n",
			"split/sales_ranking/train.csv.gz": "0\n",
			"split/sales_ranking/valid.csv.gz": "1\n",
			"split/sales_ranking/test.csv.gz":  "2\n3\n",
			"mapping/nodeidx2asin.csv.gz":      "node idx,asin\n0,0027774031\n1,0027775031\n2,0028604202\n3,B00002\n",
			"Amazon-3M.raw/trn.json.gz": `{"uid": "0028604202", "title": "A <book> & more", "content": "Long.",` +
				` "target_ind": [1], "target_rel": [1.0]}` + "\n",
			"Amazon-3M.raw/tst.json": `{"uid": "0027774031", "title": "Cup", "content": ""}` + "\n" +
				`{"uid": "X", "title": "?"}` + "\n",
			"mapping/labelidx2productcategory.gz": "",
		}, `{"id":"0","text":"Cup","label":"0","asin":"0027774031"}
{"id":"1","text":"","label":"1","asin":"0027775031"}
{"id":"2","text":"A <book> & more\nLong.","label":"2","asin":"0028604202"}
{"id":"3","text":"","label":"2","asin":"B00002"}
`, "id,split\n0,train\n1,valid\n2,test\n3,test\n",
			ogb.Stats{Nodes: 4, Edges: 3, Train: 1, Valid: 1, Test: 2, WithoutText: 2, UnknownTexts: 1}},
		{"papers100M by index", "ogbn-papers100M", with(papers, map[string]string{
			"paperinfo/idx_title.tsv": "1\tOne\n0\tZero\n", "paperinfo/idx_abs.tsv": "2\tTwo.\n0\tNone.\n"}),
			paperNodes, "id,split\n0,train\n2,valid\n", paperStats},
		{"papers100M by paper", "ogbn-papers100M", with(papers, map[string]string{
			"paperinfo/idx_title.tsv": "39886162\tOne\n9657784\tZero\n",
			"paperinfo/idx_abs.tsv":   "116214155\tTwo.\n9657784\tNone.\n"}),
			paperNodes, "id,split\n0,train\n2,valid\n", paperStats},
	} {
		t.Run(tc.what, func(t *testing.T) {
			dir, out := t.TempDir(), t.TempDir()
			write(t, dir, tc.files)
			stats, err := ogb.Import(t.Context(), ogb.Options{Dir: dir, Name: tc.name, Out: out})
			if err != nil {
				t.Fatal(err)
			}
			stats.FirstBad = ""
			if stats != tc.stats {
				t.Errorf("stats %+v, want %+v", stats, tc.stats)
			}
			for name, want := range map[string]string{ogb.NodesFile: tc.nodes, ogb.EdgesFile: arxivEdges,
				ogb.SplitFile: tc.split} {
				if got := read(t, filepath.Join(out, name)); got != want {
					t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
				}
			}
			left, err := os.ReadDir(out)
			if err != nil || len(left) != 3 {
				t.Errorf("%d files are left, %v", len(left), err)
			}
		})
	}
}

// TestFaults: a fault names its file and line, and leaves no file that looks whole.
func TestFaults(t *testing.T) {
	for _, tc := range []struct{ what, file, text, want string }{
		{"an edge to no node", "raw/edge.csv.gz", "0,1\n2,9\n3,0\n", "edge.csv.gz:2: node 9: there are 4 nodes"},
		{"half an edge", "raw/edge.csv.gz", "0,1\n2\n", "edge.csv.gz:2: want two node indices"},
		{"too few edges", "raw/edge.csv.gz", "0,1\n", "1 edges, and there should be 3"},
		{"too few labels", "raw/node-label.csv.gz", "1\n2\n", "the file ends here"},
		{"a label in words", "raw/node-label.csv.gz", "1\ncs.AI\n2\n3\n", `node-label.csv.gz:2: "cs.AI" is no whole number`},
		{"names out of order", "mapping/nodeidx2paperid.csv.gz", "node idx,paper id\n0,5\n2,6\n",
			"nodeidx2paperid.csv.gz:3: want 1,NAME"},
		{"a split of another graph", "split/time/valid.csv.gz", "44\n", "valid.csv.gz:1: no node of 4"},
		{"no number of nodes", "raw/num-node-list.csv.gz", "", "num-node-list.csv.gz:1: the file ends here"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			dir, out := t.TempDir(), t.TempDir()
			files := arxiv()
			files[tc.file] = tc.text
			write(t, dir, files)
			_, err := ogb.Import(t.Context(), ogb.Options{Dir: dir, Name: "ogbn-arxiv", Out: out})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			left, _ := filepath.Glob(filepath.Join(out, "*.part"))
			temporary, _ := filepath.Glob(filepath.Join(out, "texts-*"))
			if len(left)+len(temporary) > 0 {
				t.Errorf("%q are left", append(left, temporary...))
			}
		})
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	for _, file := range []string{"titleabs.tsv", "raw/edge.csv.gz", "split/time/test.csv.gz",
		"mapping/nodeidx2paperid.csv.gz"} {
		dir := t.TempDir()
		files := arxiv()
		delete(files, file)
		write(t, dir, files)
		_, err := ogb.Import(t.Context(), ogb.Options{Dir: dir, Name: "ogbn-arxiv", Out: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(file, ".gz")) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := ogb.Import(t.Context(), ogb.Options{Name: "ogbn-mag"}); err == nil ||
		!strings.Contains(err.Error(), "ogbn-arxiv") {
		t.Errorf("%v", err)
	}
}

func TestImportStopsWithItsContext(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	write(t, dir, arxiv())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ogb.Import(ctx, ogb.Options{Dir: dir, Name: "ogbn-arxiv", Out: out}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(out, ogb.NodesFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is there: %v", err)
	}
}

// FuzzNPZ: an archive of any bytes is an error, not a panic.
func FuzzNPZ(f *testing.F) {
	f.Add([]byte("\x93NUMPY\x01\x00\x10\x00{'descr': '<i8'}"))
	f.Fuzz(func(t *testing.T, header []byte) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"raw/data.npz": npz(t, map[string][]byte{"num_nodes_list": header})})
		_, err := ogb.Import(t.Context(), ogb.Options{Dir: dir, Name: "ogbn-papers100M", Out: t.TempDir()})
		if err == nil {
			t.Error("an archive with one array is taken for a data set")
		}
	})
}
