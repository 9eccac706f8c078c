package decode_test

import (
	"encoding/json"
	"testing"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

// What is placed at mapped paths is read from there.
func TestPlace(t *testing.T) {
	for _, m := range []decode.EdgeMapping{
		{Src: "src", Dst: "dst", Deleted: "deleted"},
		{Src: "from", Dst: "links[*].target", Deleted: "deleted"},
		{Src: "item.sku", Dst: "after.near[2]", Deleted: "deleted"},
		{Src: "a.b[0].c", Dst: "a.x[*][1]", Deleted: "a.gone", Mode: decode.Replace},
	} {
		object := map[string]any{}
		for path, value := range map[string]any{m.Src: "here", m.Dst: "there", m.Deleted: true} {
			p, err := decode.ParsePath(path)
			if err == nil {
				err = p.Place(object, value)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		d, err := decode.Edges(m, kafkatest.Limits(), 1)
		if err != nil {
			t.Fatal(err)
		}
		got, fault := d.Decode(decode.Record{Key: []byte("here"), Value: data}, nil)
		if fault != nil || len(got) != 1 || got[0].Op != mutation.DeleteEdge || got[0].ID != "here" ||
			got[0].Other != "there" {
			t.Errorf("%+v: %s is %+v (%v)", m, data, got, fault)
		}
	}
}
