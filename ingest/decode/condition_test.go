package decode_test

import (
	"encoding/json"
	"strings"
	"testing"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

// TestDeletedByCondition: a record deletes if the fields that the mapping names say so, whatever their
// JSON types; a record without them does not.
func TestDeletedByCondition(t *testing.T) {
	for _, c := range []struct {
		deleted, fields string
		want            bool
	}{
		{"gone", `"gone":true`, true},
		{"gone", `"gone":"TRUE"`, true},
		{"gone", `"gone":false`, false},
		{"gone", ``, false},
		{"status == draft", `"status":"draft"`, true},
		{`status == "draft"`, `"status":"draft"`, true},
		{"status==draft", `"status":"dr\u0061ft"`, true},
		{"status == draft", `"status":"Draft"`, false},
		{"status == draft", ``, false},
		{"status == draft", `"status":null`, false},
		{"status != active", `"status":"draft"`, true},
		{"status != active", `"status":"active"`, false},
		{"status != active", ``, false},
		{"status in [draft, archived]", `"status":"archived"`, true},
		{"status in [draft, archived]", `"status":"active"`, false},
		{`status in ["sold out, for good", "a \"b\""]`, `"status":"sold out, for good"`, true},
		{`status in ["sold out, for good", "a \"b\""]`, `"status":"a \"b\""`, true},
		{`status == ""`, `"status":""`, true},
		{"Published in [0, -1]", `"Published":"0"`, true},
		{"Published in [0, -1]", `"Published":-1`, true},
		{"Published in [0, -1]", `"Published":0.0`, true},
		{"Published in [0, -1]", `"Published":1`, false},
		{"active == false", `"active":false`, true},
		{"active == false", `"active":true`, false},
		{"meta.tags[0] == gone", `"meta":{"tags":["gone","new"]}`, true},
		{"gone or status == draft", `"status":"draft"`, true},
		{"gone or status == draft", `"gone":true,"status":"active"`, true},
		{"gone or status == draft", `"gone":false,"status":"active"`, false},
		{`status == "a or b" or online == 2`, `"online":2`, true},
		{`status == "a or b" or online == 2`, `"status":"a or b"`, true},
	} {
		value := strings.TrimSuffix(`{"id":"a","text":"t",`+c.fields, ",") + "}"
		got, fault := nodes(t, decode.NodeMapping{ID: "id", Text: []string{"text"}, Deleted: c.deleted}).
			Decode(record("", value), nil)
		if fault != nil || len(got) != 1 || (got[0].Op == mutation.DeleteNode) != c.want {
			t.Errorf("%s of %s: got %+v, %v; want a deletion: %v", c.deleted, value, got, fault, c.want)
		}
	}
}

// TestConditionsOfOtherTypes: a field that cannot decide is a dead letter that says how to map it.
func TestConditionsOfOtherTypes(t *testing.T) {
	for deleted, c := range map[string]struct{ value, says string }{
		"status":          {`{"id":"a","status":"draft"}`, "status == VALUE"},
		"status == draft": {`{"id":"a","status":["draft"]}`, "a list"},
		"status != draft": {`{"id":"a","status":{}}`, "an object"},
	} {
		got, fault := nodes(t, decode.NodeMapping{ID: "id", Deleted: deleted}).Decode(record("", c.value), nil)
		if fault == nil || fault.Code != decode.BadType || !strings.Contains(fault.Message, c.says) {
			t.Errorf("%s of %s: got %+v, %v; want %s with %q", deleted, c.value, got, fault, decode.BadType, c.says)
		}
	}
}

func TestBadConditions(t *testing.T) {
	for deleted, says := range map[string]string{
		"status ==":            "a value is missing",
		"status in [a, ]":      "a value is missing",
		"status in [a, b":      "no closing bracket",
		`status == "draft`:     "cannot read the value",
		"== draft":             "names no field",
		"a[*] == draft":        "several values",
		"gone or ":             "names no field",
		"status[x] == archive": "cannot read [x]",
	} {
		_, err := decode.Nodes(decode.NodeMapping{ID: "id", Deleted: deleted}, kafkatest.Limits(), 1)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "nodes.deleted") {
			t.Errorf("%q: %v; want nodes.deleted and %q", deleted, err, says)
		}
	}
}

// TestDeletionsOfEdges: the value that takes an edge back does so under each condition and mode.
func TestDeletionsOfEdges(t *testing.T) {
	for _, deleted := range []string{"deleted", "meta.state == gone", "state != live", "state in [gone, sold]"} {
		for _, mode := range []decode.Mode{decode.Add, decode.Replace} {
			m := decode.EdgeMapping{Src: "from", Dst: "links[*].target", Deleted: deleted, Mode: mode}
			value, err := m.Deletion("a", "b", "")
			if err != nil {
				t.Fatal(err)
			}
			got, fault := edges(t, m).Decode(record("", string(value)), nil)
			if fault != nil || len(got) != 1 || got[0].Op != mutation.DeleteEdge || got[0].ID != "a" || got[0].Other != "b" {
				t.Errorf("%s, %s: %s is %+v, %v", deleted, mode, value, got, fault)
			}
		}
	}
	if _, err := (&decode.EdgeMapping{Src: "src", Dst: "dst"}).Deletion("a", "b", ""); err == nil {
		t.Error("an edge was taken back without a field that says so")
	}
}

// FuzzConditions: a condition is refused or decides; Paths names what it looks at.
func FuzzConditions(f *testing.F) {
	for _, s := range []string{"gone", "a == b", `a in ["x", y] or b != ""`, "a in [", `a == "`} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, deleted, status string) {
		d, err := decode.Nodes(decode.NodeMapping{ID: "id", Deleted: deleted}, kafkatest.Limits(), 1)
		if err != nil {
			return
		}
		if deleted != "" && len(decode.Paths(deleted)) == 0 {
			t.Errorf("%q is accepted and looks at nothing", deleted)
		}
		value, err := json.Marshal(map[string]string{"id": "a", "status": status})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = d.Decode(record("", string(value)), nil) // it must not panic
	})
}
