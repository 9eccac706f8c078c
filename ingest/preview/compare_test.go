package preview_test

import (
	"reflect"
	"testing"

	"giantstream/ingest/preview"
)

// What two mappings make of a record is compared by its place, aspect by aspect.
func TestCompare(t *testing.T) {
	of := func(dead int64, rows ...preview.Row) *preview.Preview {
		p := &preview.Preview{Nodes: preview.Side{Records: int64(len(rows)), Rows: rows}}
		if dead > 0 {
			p.Nodes.Faults = []preview.Fault{{Code: "missing_text", Records: dead}}
		}
		return p
	}
	before := of(0,
		preview.Row{Where: "nodes/0/0", ID: "a", Links: []string{"b"}},
		preview.Row{Where: "nodes/0/1", ID: "b", Text: "blue"},
		preview.Row{Where: "nodes/0/2", ID: "c", Text: "gone with the retention"})
	after := of(1,
		preview.Row{Where: "nodes/0/0", ID: "a", Text: "red", Links: []string{"b", "c"}},
		preview.Row{Where: "nodes/0/1", ID: "b", Text: "blue"},
		preview.Row{Where: "nodes/0/3", ID: "d", Text: "came meanwhile"})
	want := []preview.Comparison{{Input: "nodes", Records: 2, DeadAfter: 1, Changes: []preview.Change{
		{What: "text", Records: 1, Where: "nodes/0/0", ID: "a", After: "red"},
		{What: "links", Records: 1, Where: "nodes/0/0", ID: "a", Before: "b", After: "b, c"}}}}
	if got := preview.Compare(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := preview.Compare(after, after); len(got) != 1 || got[0].Changes != nil || got[0].Records != 3 {
		t.Errorf("a mapping differs from itself: %+v", got)
	}
}
