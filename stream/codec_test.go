package stream

import (
	"bytes"
	"slices"
	"testing"
)

func FuzzDecodeHead(f *testing.F) {
	h := head{known: true, stated: true, at: Version{5, 0, 7}, replaced: [families]mark{{true, Version{1, 0, 2}}, {true, Version{-3, 1, 4}}}}
	f.Add(h.encode(nil))
	f.Add([]byte{headStated})
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := decodeHead(data); err == nil {
			if again, err := decodeHead(h.encode(nil)); err != nil || again != h {
				t.Errorf("%+v comes back as %+v, %v", h, again, err)
			}
		}
	})
}

func FuzzDecodeAdjacency(f *testing.F) {
	a := adjacency{out: [families]assertion{{}, {true, true, Version{5, 1, 7}}}, in: assertion{true, false, Version{9, 0, 1}}}
	f.Add(a.encode(nil))
	f.Add([]byte{0xFF, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := decodeAdjacency(data); err == nil {
			if again, err := decodeAdjacency(a.encode(nil)); err != nil || again != a {
				t.Errorf("%+v comes back as %+v, %v", a, again, err)
			}
		}
	})
}

func FuzzDecodeText(f *testing.F) {
	f.Add(encodeText(nil, "text", "class"))
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, class, err := decodeText(data); err == nil {
			if t2, c2, err := decodeText(encodeText(nil, text, class)); err != nil || t2 != text || c2 != class {
				t.Errorf("%q, %q come back as %q, %q, %v", text, class, t2, c2, err)
			}
		}
	})
}

func FuzzAdjacencyKey(f *testing.F) {
	f.Add("a", "b", "a\x00", "c")
	f.Add("", "\x00\x01", "\x00", "\x01")
	f.Fuzz(func(t *testing.T, owner, other, owner2, other2 string) {
		key := adjacencyKey(nil, owner, other)
		if o, d, err := splitAdjacencyKey(key); err != nil || o != owner || d != other {
			t.Fatalf("%q, %q come back as %q, %q, %v", owner, other, o, d, err)
		}
		// Keys sort as (owner, other) does, so that one pass over ids in
		// order is one pass over adjacency.
		want := slices.Compare([]string{owner, other}, []string{owner2, other2})
		if got := bytes.Compare(key, adjacencyKey(nil, owner2, other2)); got != want {
			t.Errorf("(%q,%q) and (%q,%q) sort as %d, their keys as %d", owner, other, owner2, other2, want, got)
		}
		if owner != owner2 && bytes.HasPrefix(key, adjacencyPrefix(nil, owner2)) {
			t.Errorf("an entry of %q would be read as one of %q", owner, owner2)
		}
	})
}
