package wordpiece

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden is testdata/golden.json, which testdata/golden.py writes with the
// reference tokenizer.
type golden struct {
	Texts []string `json:"texts"`
	Sets  map[string]struct {
		Vocab        string    `json:"vocab"`
		Lower        bool      `json:"lower"`
		StripAccents bool      `json:"strip_accents"`
		SpaceCJK     bool      `json:"space_cjk"`
		IDs          [][]int32 `json:"ids"`
	} `json:"sets"`
}

func readGolden(t testing.TB) golden {
	t.Helper()
	var g golden
	data, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func vocab(t testing.TB, dir, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return ParseVocab(data)
}

func TestIDsEqualTheReference(t *testing.T) {
	g := readGolden(t)
	for name, set := range g.Sets {
		t.Run(name, func(t *testing.T) {
			dir := "testdata"
			if set.Vocab == vocabName {
				if dir = os.Getenv("GIANTSTREAM_MINILM"); dir == "" {
					t.Skip("set GIANTSTREAM_MINILM to the folder of all-MiniLM-L6-v2 (docs/format/bert.md)")
				}
			}
			tok, err := New(vocab(t, dir, set.Vocab), Options{
				Lower: set.Lower, StripAccents: set.StripAccents, SpaceCJK: set.SpaceCJK, MaxWordRunes: 100,
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range g.Texts {
				if got := tok.Encode(text, 64, nil); !slices.Equal(got, set.IDs[i]) {
					t.Errorf("%q:\n got %v\nwant %v", text, got, set.IDs[i])
				}
			}
		})
	}
}

var few = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "screw", "##s", "##dri", "##ver", "steel", "e",
	"a", "Steel", "中", "##文", "é"}

func TestEncode(t *testing.T) {
	uncased, err := New(few, Uncased())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		max  int
		want []int32
	}{
		{"", 8, []int32{2, 3}},
		{"Steel screwdrivers", 8, []int32{2, 9, 5, 7, 8, 6, 3}},
		{"screwdrivers", 4, []int32{2, 5, 7, 3}}, // cut within a word
		{"steel", 2, []int32{2, 3}},
		{"screwable", 8, []int32{2, 1, 3}}, // a word is covered whole or unknown
		{"É中文", 8, []int32{2, 10, 13, 1, 3}},
		{"a[SEP]a", 8, []int32{2, 11, 3, 11, 3}},
		{"a\xff\xfea", 8, []int32{2, 1, 3}}, // "aa"
	} {
		if got := uncased.Encode(c.text, c.max, nil); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, want %v", c.text, got, c.want)
		}
	}
}

func TestLongTextsCostWhatIsKept(t *testing.T) {
	tok, err := New(few, Uncased())
	if err != nil {
		t.Fatal(err)
	}
	// Windows are cut at spaces: the same ids however the text lies in them.
	for shift := range 40 {
		text := strings.Repeat(" ", shift) + strings.Repeat("screwdriver é ", 400)
		got := tok.Encode(text, 402, nil)
		for i, id := range got[1:401] {
			if want := []int32{5, 7, 8, 10}[i%4]; id != want {
				t.Fatalf("shift %d: piece %d is %d, want %d", shift, i, id, want)
			}
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, text := range readGolden(f).Texts {
		f.Add(text, 16)
	}
	f.Add("\xff\xfe[CLS", 2)
	f.Add(strings.Repeat("[", 3000)+"]", 9)
	pieces := vocab(f, "testdata", "vocab-uncased.txt")
	var toks []*Tokenizer
	for _, o := range []Options{Uncased(), {SpaceCJK: true, MaxWordRunes: 100}, {Lower: true, MaxWordRunes: 3}} {
		tok, err := New(pieces, o)
		if err != nil {
			f.Fatal(err)
		}
		toks = append(toks, tok)
	}
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = 2 + max(most, -most, 0)%1000
		for _, tok := range toks {
			ids := tok.Encode(text, most, nil)
			if len(ids) < 2 || len(ids) > most || ids[0] != tok.cls || ids[len(ids)-1] != tok.sep {
				t.Fatalf("%d ids of at most %d, from %d to %d", len(ids), most, ids[0], ids[len(ids)-1])
			}
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("id %d of %d", id, tok.Size())
				}
			}
			long := tok.Encode(text, most+7, nil)
			if n := len(ids) - 1; !slices.Equal(long[:n], ids[:n]) {
				t.Fatalf("truncation changes what is kept: %v and %v", ids, long)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	dir := os.Getenv("GIANTSTREAM_MINILM")
	if dir == "" {
		b.Skip("set GIANTSTREAM_MINILM to the folder of all-MiniLM-L6-v2 (docs/format/bert.md)")
	}
	tok, err := Load(os.DirFS(dir))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, text string }{
		{"ascii",
			"Stainless steel deck screws with star drive and sharp point, rust-proof for outdoor use; 100 pieces per " +
				"box, replaces item 4711-B. "},
		{"accents",
			"Crème brûlée à la façon de São Paulo, jalapeño über Ångström — naïve “quotes” and more plain words in between. "},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := strings.Repeat(c.text, 5)
			var ids []int32
			n := 0
			for b.Loop() {
				ids = tok.Encode(text, 512, ids[:0])
				n += len(ids)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
