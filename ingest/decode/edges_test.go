package decode_test

import (
	"testing"

	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// What a record says of the weight of its edges.
func TestWeights(t *testing.T) {
	add := decode.EdgeMapping{Src: "src", Dst: "dst", Deleted: "deleted", Weight: "w"}
	replace := add
	replace.Mode = decode.Replace
	for value, want := range map[string]float32{
		`{"src":"a","dst":"b","w":2.5}`:                         2.5,
		`{"src":"a","dst":["b","c"],"w":3}`:                     3,
		`{"src":"a","dst":"b","w":0}`:                           0,
		`{"src":"a","dst":"b","w":-0.0}`:                        0,
		`{"src":"a","dst":"b","w":" 1e3 "}`:                     1000, // CSV has strings alone
		`{"src":"a","dst":"b","w":""}`:                          1,
		`{"src":"a","dst":"b","w":null}`:                        1,
		`{"src":"a","dst":"b"}`:                                 1,
		`{"src":"a","dst":"b","w":1.0000000000000000000000001}`: 1,
	} {
		for _, m := range []decode.EdgeMapping{add, replace} {
			got, fault := edges(t, m).Decode(record("a", value), nil)
			if fault != nil || len(got) == 0 {
				t.Errorf("%s, mode %q: %+v, %v", value, m.Mode, got, fault)
			}
			for _, g := range got {
				if g.Weight != mutation.WeightOf(want) {
					t.Errorf("%s, mode %q: weight %v, want %v", value, m.Mode, g.Weight.Float(), want)
				}
			}
		}
	}
	for _, w := range []string{"-1", `"-0.5"`, "1e39", `"NaN"`, `"inf"`, `"heavy"`, "true", "[]", "{}"} {
		value := `{"src":"a","dst":"b","w":` + w + `}`
		got, fault := edges(t, add).Decode(record("a", value), nil)
		if fault == nil || fault.Code != decode.BadWeight || len(got) > 0 {
			if w == "[]" && fault == nil && got[0].Weight == mutation.WeightOf(1) {
				continue // as if it were absent
			}
			t.Errorf("%s: %+v, %v; want %s", value, got, fault, decode.BadWeight)
		}
	}
	got, fault := edges(t, add).Decode(record("a", `{"src":"a","dst":"b","w":-1,"deleted":true}`), nil)
	if fault != nil || len(got) != 1 || got[0].Weight.Stated() {
		t.Errorf("a deletion becomes %+v, %v; its weight says nothing", got, fault)
	}
	add.Weight = ""
	if got, fault = edges(t, add).Decode(record("a", `{"src":"a","dst":"b","w":7}`), nil); fault != nil ||
		got[0].Weight.Stated() {
		t.Errorf("without a mapped weight: %+v, %v", got, fault)
	}
	add.Weight = "w[*]"
	if _, err := decode.Edges(add, decode.Limits{}, 1); err == nil {
		t.Error("several weights of one record are mapped")
	}
}
