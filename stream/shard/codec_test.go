package shard

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"giantstream/stream/mutation"
)

func FuzzDecodeHead(f *testing.F) {
	h := nodeHeader{known: true, stated: true, at: version(5, 0, 7),
		replaced: [families]mark{{true, version(1, 0, 2)}, {true, version(-3, 1, 4)}}}
	f.Add(h.encode(nil))
	f.Add([]byte{flagStated})
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := decodeHeader(data); err == nil {
			if again, err := decodeHeader(h.encode(nil)); err != nil || again != h {
				t.Errorf("%+v comes back as %+v, %v", h, again, err)
			}
		}
	})
}

func FuzzDecodeAdjacency(f *testing.F) {
	a := adjacency{out: [families]assertion{{}, {set: true, live: true, at: version(5, 1, 7)}},
		in: assertion{set: true, at: version(9, 0, 1)}}
	f.Add(a.encode(nil))
	a.out[1].weight = mutation.WeightOf(2.5)
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

// Links without weights are as they were in states of earlier releases.
func TestLinksWithoutWeightsKeepTheirBytes(t *testing.T) {
	a := adjacency{out: [families]assertion{{}, {set: true, live: true, at: version(5, 1, 7)}},
		in: assertion{set: true, at: version(9, 0, 1)}}
	old := []byte{1<<2 | 1<<3 | 1<<4, 10, 1, 14, 18, 0, 2}
	if got := a.encode(nil); !bytes.Equal(got, old) {
		t.Errorf("encoded as %x, was %x", got, old)
	}
	if got, err := decodeAdjacency(old); err != nil || got != a {
		t.Errorf("%x decodes to %+v, %v; want %+v", old, got, err, a)
	}
	a.in = assertion{set: true, live: true, weight: mutation.WeightOf(0.5), at: version(9, 0, 1)}
	weighed := a.encode(nil)
	if got, err := decodeAdjacency(weighed); err != nil || got != a {
		t.Errorf("%x decodes to %+v, %v; want %+v", weighed, got, err, a)
	}
	if len(weighed) != len(old)+8 { // of two live assertions
		t.Errorf("two weights take %d bytes", len(weighed)-len(old))
	}
}

func TestFarEnds(t *testing.T) {
	before := ""
	for _, l := range []struct {
		other string
		kind  mutation.Kind
	}{{"a", mutation.Kind{}}, {"a", mutation.Kind{Name: "k"}}, {"a", mutation.Kind{Name: "k", Directed: true}},
		{"a", mutation.Kind{Name: "kk"}}, {"aa", mutation.Kind{}}, {"b", mutation.Kind{Name: "k"}}} {
		far := farEnd(l.other, l.kind)
		if other, kind := splitFarEnd(far); other != l.other || kind != l.kind {
			t.Errorf("%+v comes back as %q, %+v", l, other, kind)
		}
		if far <= before {
			t.Errorf("%+v does not come after the one before it", l)
		}
		before = far
		if ids := IDsOf(adjacencyKey(nil, "o", far), nil); len(ids) != 2 || string(ids[1]) != l.other {
			t.Errorf("%+v names %q", l, ids)
		}
	}
}

func FuzzDecodeOrder(f *testing.F) {
	at := version(9, 3, 7)
	o := order{stated: true, at: at, time: 5, kind: "cart", customer: "c", replaced: mark{true, version(1, 3, 2)},
		lines: []orderLine{{"a", 1, true, at, 5}, {"b", 2, true, version(8, 3, 6), 5}, {"c", 0.5, true, at, 3},
			{"d", 0, false, version(2, 3, 3), 0}, {"e", 1, true, version(8, 3, 5), 8}}}
	f.Add(o.encode(nil))
	f.Add([]byte{0, 1, 2, 3, 4, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decodeOrder(data)
		if err != nil {
			return
		}
		code := o.encode(nil) // quantities may be NaN, which is not equal to itself
		if again, err := decodeOrder(code); err != nil || !bytes.Equal(again.encode(nil), code) {
			t.Errorf("%+v comes back as %+v, %v", o, again, err)
		}
	})
}

func FuzzDecodeVectors(f *testing.F) {
	v := nodeVectors{at: version(9, 2, 7), all: []mutation.Vector{{Name: "image", Precision: mutation.Float16,
		Data: "abcd"}, {Name: "text", Precision: mutation.Float32, Data: "abcdefgh"}}}
	f.Add(v.encode(nil))
	f.Add((&nodeVectors{at: version(1, 0, 0)}).encode(nil))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 1, 0, 4, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decodeVectors(data)
		if err != nil {
			return
		}
		if again, err := decodeVectors(v.encode(nil)); err != nil || again.at != v.at ||
			!slices.Equal(again.all, v.all) {
			t.Errorf("%+v comes back as %+v, %v", v, again, err)
		}
	})
}

func FuzzDecodeText(f *testing.F) {
	f.Add(encodeText(nil, "text", "class"))
	f.Add(encodeText(nil, "", strings.Repeat("c", 1<<7)))
	f.Add(encodeText(nil, "text", strings.Repeat("c", 1<<14-1)))
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, class, err := decodeText(data); err == nil {
			again := encodeText(nil, text, class)
			if t2, c2, err := decodeText(again); err != nil || t2 != text || c2 != class {
				t.Errorf("%q, %q come back as %q, %q, %v", text, class, t2, c2, err)
			}
			if n := textBytes(text, class); n != len(again) {
				t.Errorf("%q, %q take %d bytes, not %d", text, class, len(again), n)
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
		// Keys sort as (owner, other) does, so that one pass over ids in order is one pass over
		// adjacency.
		want := slices.Compare([]string{owner, other}, []string{owner2, other2})
		if got := bytes.Compare(key, adjacencyKey(nil, owner2, other2)); got != want {
			t.Errorf("(%q,%q) and (%q,%q) sort as %d, their keys as %d", owner, other, owner2, other2, want, got)
		}
		if owner != owner2 && bytes.HasPrefix(key, adjacencyPrefix(nil, owner2)) {
			t.Errorf("an entry of %q would be read as one of %q", owner, owner2)
		}
	})
}

func version(eventTime int64, rank uint8, offset int64) mutation.Version {
	return mutation.Version{EventTime: eventTime, Rank: rank, Offset: offset}
}

// splitAdjacencyKey is the inverse of adjacencyKey.
func splitAdjacencyKey(key []byte) (owner, other string, err error) {
	if len(key) == 0 || key[0] != spaceAdjacency {
		return "", "", fmt.Errorf("%w: key %q is no adjacency", errCorruptState, key)
	}
	var id []byte
	for rest := key[1:]; ; {
		i := bytes.IndexByte(rest, 0)
		if i < 0 || i+1 >= len(rest) {
			break
		}
		id = append(id, rest[:i]...)
		switch rest[i+1] {
		case 1:
			return string(id), string(rest[i+2:]), nil
		case 0xFF:
			id = append(id, 0)
			rest = rest[i+2:]
			continue
		}
		break
	}
	return "", "", fmt.Errorf("%w: adjacency key %q has no owner", errCorruptState, key)
}
