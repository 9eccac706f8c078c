package ingesting

import (
	"testing"

	"giantstream/ingest/decode"
)

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
