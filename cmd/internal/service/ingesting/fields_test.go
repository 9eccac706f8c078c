package ingesting

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/ingest"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
)

// A renamed field is reported for each input of producers, also where an absent one deletes.
func TestFieldsOfAllInputsAreWatched(t *testing.T) {
	limits := decode.Limits{RecordBytes: 1 << 20, TextBytes: 1 << 20, EdgesPerRecord: 10}
	c := feed.Config{Topics: ingest.Topics{Nodes: "nodes", Edges: "edges", Orders: "orders", Further: []string{"orders",
		"prices", "more"}}, Limits: limits, Mapping: decode.Mapping{
		Nodes: decode.NodeMapping{ID: "id", Text: []string{"title"}}, Edges: decode.EdgeMapping{Src: "src", Dst: "dst"},
		Orders: map[string]decode.OrderMapping{"orders": {ID: []string{"id"}, Items: "lines[*].sku", MaxItems: 3}},
		Attributes: map[string]decode.AttributesMapping{
			"prices": {ID: "id", Attributes: []decode.Attribute{{Name: "price", Path: "price"}}},
			"more":   {ID: "id", Attributes: []decode.Attribute{{Name: "stock", Path: "stock"}}}}}}
	counts, err := newFieldCounts(&c)
	if err != nil {
		t.Fatal(err)
	}
	for topic, value := range map[string]string{"orders": `{"id":"o","items":[{"sku":"a"}]}`,
		"prices": `{"id":"a","cost":1}`, "more": `{"id":"a","stock":1}`} {
		d, err := c.Decoder(topic, 1)
		if err != nil {
			t.Fatal(err)
		}
		d.CountInto(counts.byTopic[topic])
		for range fieldCheckRecords {
			if _, fault := d.Decode(decode.Record{Value: []byte(value)}, nil); fault != nil {
				t.Fatal(fault)
			}
		}
	}
	w := fieldWatch{threshold: 0.01, last: map[string]decode.Filled{}, low: map[string]bool{}}
	var low []string
	for _, f := range w.check(counts.tallies()) {
		low = append(low, f.Field+" "+f.Path)
	}
	if want := []string{"baskets.items lines[*].sku", "attributes.fields price"}; !slices.Equal(low, want) {
		t.Errorf("%q, want %q", low, want)
	}
	if err := prometheus.NewPedanticRegistry().Register(counts); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, f := range counts.tallies() {
		if key := f.Field + " " + f.Path; seen[key] {
			t.Errorf("%s is counted twice", key)
		} else {
			seen[key] = true
		}
	}
}

// TestFieldWatch: a field that hardly any record has is reported once until it is back, and not before
// enough records have come.
func TestFieldWatch(t *testing.T) {
	w := fieldWatch{threshold: 0.01, last: map[string]decode.Filled{}, low: map[string]bool{}}
	records, filled := int64(0), int64(0)
	for i, step := range []struct {
		records, filled int64
		want            int
	}{
		{999, 0, 0}, {1, 0, 1}, {1000, 10, 0}, {500, 0, 0}, {500, 500, 0}, {1000, 11, 0}, {1000, 10, 1},
	} {
		records, filled = records+step.records, filled+step.filled
		got := w.check([]decode.Filled{{Field: "nodes.text", Path: "title", Records: records, Filled: filled},
			{Field: "nodes.class", Path: "label", Records: records}})
		if len(got) != step.want {
			t.Errorf("step %d: %+v, want %d", i, got, step.want)
		}
	}
}
