package publish

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// seen encodes a node as its text's length plus 1000 times the first byte of its vector.
type seen map[string]byte

func (s seen) Follow(r *rows.Vectors) {
	delete(s, r.NodeID)
	if len(r.Names) > 0 {
		s[r.NodeID] = r.Values[0][0]
	}
}

func (s seen) Encode(ids, texts []string, out []float32) error {
	for i, id := range ids {
		out[i] = float32(len(texts[i])) + 1000*float32(s[id])
	}
	return nil
}

// A node is encoded with the vectors that it has, those that were committed before its row or with it, whether a
// follower has read them or one before it, and after sends that failed. Of the cut, the model has them.
func TestNodesAreEncodedWithTheirVectors(t *testing.T) {
	has := func(id string, v byte) rows.Vectors {
		return rows.Vectors{NodeID: id, Names: []string{"image"}, Bits: []int32{16}, Values: [][]byte{{v, 0}}}
	}
	history := func(t *testing.T, store *memstore.Store) *Model {
		commitVectors(t, store, 1, []rows.Vectors{has("a", 9)}, [2]string{"a", "x"}, [2]string{"b", "xx"})
		m := generationAt(t, store, 1, 1)
		m.Follow = func() Encoder { return seen{"a": 9} }
		commitVectors(t, store, 2, []rows.Vectors{has("b", 1), has("c", 2)}, [2]string{"b", "xx"})
		commit(t, store, 3, [2]string{"a", "xxx"}, [2]string{"b", "xxxx"}, [2]string{"c", "x"})
		commitVectors(t, store, 4, []rows.Vectors{{NodeID: "b"}, has("c", 3)}, [2]string{"b", "xxxx"}, [2]string{"c", "x"})
		commit(t, store, 5, [2]string{"b", "xx"}, [2]string{"c", "xx"})
		return m
	}
	want := []string{"a g1 m3 [9003]", "b g1 m5 [2]", "c g1 m5 [3002]"}
	for _, fails := range []int{0, 2, 3} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("send %d fails, restarts %t", fails, restarts), func(t *testing.T) {
				store, out := &memstore.Store{}, &topic{}
				out.fail = func(call int) error {
					if call == fails {
						return errors.New("the broker is gone")
					}
					return nil
				}
				m := history(t, store)
				f := follower(store, out, func() *Model { return m })
				for range 12 {
					if restarts {
						f = follower(store, out, func() *Model { return m })
					}
					_, _ = f.Step(t.Context()) // again after a failure
				}
				if got := out.newest(); !slices.Equal(got, want) {
					t.Errorf("the topic has %v, want %v", got, want)
				}
			})
		}
	}
}

// Records of one window do not get vectors of a later one.
func TestRowsHaveTheVectorsOfTheirWindow(t *testing.T) {
	store, out := &memstore.Store{}, &topic{}
	v := func(b byte) []rows.Vectors {
		return []rows.Vectors{{NodeID: "a", Names: []string{"image"}, Bits: []int32{16}, Values: [][]byte{{b, 0}}}}
	}
	m := generationAt(t, store, 1, 0)
	m.Follow = func() Encoder { return seen{} }
	f := follower(store, out, func() *Model { return m })
	for _, windows := range [][]byte{{1}, {}, {2, 3, 4}} {
		for _, k := range windows {
			commitVectors(t, store, int64(k), v(k), [2]string{"a", "x"})
		}
		if _, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range out.records {
		if want := float32(1 + 1000*r.Seq); r.Vector[0] != want {
			t.Errorf("manifest %d has %v, want %v", r.Seq, r.Vector, want)
		}
	}
	if len(out.records) != 4 {
		t.Errorf("%d records", len(out.records))
	}
}
