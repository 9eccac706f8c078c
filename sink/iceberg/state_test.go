package iceberg

import (
	"maps"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"giantstream/sink/vectordb"
)

// withState is a snapshot whose summary has a text as the state.
func withState(text string) *table.Snapshot {
	return &table.Snapshot{Summary: &table.Summary{Properties: map[string]string{keyState: text}}}
}

// Any text is a state or an error, and a state that is written again is the same.
func FuzzReadState(f *testing.F) {
	small := state{Catalog: vectordb.Catalog{Served: 2}, Heads: map[int64]int64{1: 5},
		Inputs: map[int]map[string]int64{0: {"nodes/0": 7}}}
	large := small.clone()
	large.Progress = map[int]vectordb.Progress{}
	for shard := range 200 {
		large.Progress[shard] = vectordb.Progress{}
		large.Heads = maps.Clone(large.Heads)
		large.Heads[int64(shard)] = int64(shard) << 40
	}
	for k, s := range []state{small, large} {
		text, err := s.encode()
		if err != nil || strings.HasPrefix(text, compressed) != (k == 1) {
			f.Fatalf("state %d is written as %.20q (%v)", k, text, err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Add("")
	f.Add(compressed + "H4sI")
	f.Add(compressed + "!")
	f.Add(`{"progress": {"-1": null}, "heads": {"9223372036854775808": 1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		first, err := readState(withState(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), keyState+": ") {
				t.Errorf("the error does not say what it is of: %v", err)
			}
			return
		}
		written, err := first.encode()
		if err != nil {
			t.Fatal(err)
		}
		second, err := readState(withState(written))
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, written, err)
		}
		if again, err := second.encode(); err != nil || again != written {
			t.Errorf("%q is written as %q, and then as %q (%v)", text, written, again, err)
		}
	})
}
