package pipelinetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// load writes a file of tests and reads it.
func load(t *testing.T, text string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipeline.test.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

// The example of the documentation passes.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../docs/examples/*.test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		results, err := Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			for _, d := range r.Differences {
				t.Errorf("%s: %s: want %s, got %s", name, r.Name, d.Want, d.Got)
			}
		}
	}
}

// Each way in which what came out differs from what was expected is reported, on both sides.
func TestDifferences(t *testing.T) {
	const records = `
tests:
  - name: t
    nodes:
      - {id: a, text: apple, label: fruit}
      - {id: b, text: bean}
      - {$key: c, $value: null}
      - {text: nobody}
      - 7
    edges:
      - {src: a, dst: b}
    expect:
`
	letters := `
      dead_letters: [{reason: missing_id}, {topic: nodes, record: 5}]`
	for _, c := range []struct{ name, expect, want string }{
		{"as it is", `
      nodes: [{id: b, labels: [a]}, {id: a, text: apple, class: fruit, labels: [b]}]
      edges: [{src: b, dst: a}]` + letters, ""},
		{"another text", `
      nodes: [{id: a, text: pear}, {id: b}]` + letters,
			`-node {id: a, text: "pear"}+node {id: a, text: "apple"}`},
		{"another class", `
      nodes: [{id: a, class: nut}, {id: b}]` + letters,
			`-node {id: a, class: "nut"}+node {id: a, class: "fruit"}`},
		{"other labels", `
      nodes: [{id: a, labels: [z, b]}, {id: b}]` + letters,
			`-node {id: a, labels: [b, z]}+node {id: a, labels: [b]}`},
		{"another event time", `
      nodes: [{id: a, event_time: 2024-01-01T00:00:00Z}, {id: b}]` + letters,
			`-node {id: a, event_time: 2024-01-01T00:00:00Z}+node {id: a, event_time: 2000-01-01T00:00:00Z}`},
		{"deleted", `
      nodes: [{id: a, deleted: true}, {id: b}]` + letters,
			`-node {id: a, deleted: true}+node {id: a, text: "apple", class: "fruit", labels: [b]}`},
		{"a node too few and too many", `
      nodes: [{id: a}, {id: q}]` + letters,
			`-node {id: q}++node {id: b, text: "bean", class: "", labels: [a]}`},
		{"edges", `
      edges: [{src: a, dst: z}]` + letters,
			`-edge {src: a, dst: z}++edge {src: a, dst: b}`},
		{"dead letters that were not expected", `
      edges: [{src: a, dst: b}]`,
			`+dead letter {topic: nodes, record: 4, reason: missing_id, message: "no id in the value, and the record has ` +
				`no key"}+dead letter {topic: nodes, record: 5, reason: bad_type, message: "the value is not a JSON object"}`},
		{"a dead letter that did not come", `
      dead_letters: [{topic: nodes}, {record: 4}, {topic: edges, reason: bad_json, message: xyz}]`,
			`-dead letter {topic: edges, reason: bad_json, message: "xyz"}+`},
	} {
		f, err := load(t, records+c.expect)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		results, err := Run(t.Context(), f)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got strings.Builder
		for _, d := range results[0].Differences {
			if d.Want != "" {
				fmt.Fprintf(&got, "-%s", d.Want)
			}
			fmt.Fprintf(&got, "+%s", d.Got)
		}
		if got.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got.String(), c.want)
		}
	}
}

// Records of a file are those that run would send, with the file's lines.
func TestRecordsOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("p.csv", "sku,name,related,deleted\na,apple,b|c,\nb,bean,,\na,,,\nx,y\nc,corn,,\nc,,,true\n")
	write("p.test.yaml", `
set: [ingest.nodes.id=sku, ingest.nodes.text=name, ingest.edges.src=sku, "ingest.edges.dst=related[*]"]
tests:
  - name: a table
    nodes: [{$file: p.csv, $skip_without_text: true}]
    edges: [{$file: p.csv, $list_separator: "|"}]
    expect:
      nodes: [{id: a, text: apple, labels: [b, c]}, {id: b}, {id: c, deleted: true}]
      dead_letters:
        - {topic: nodes, record: 5, reason: bad_csv}
        - {topic: edges, record: 5, reason: bad_csv}
`)
	f, err := Load(filepath.Join(dir, "p.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	results, err := Run(t.Context(), f)
	if err != nil || !results[0].Passed() {
		t.Errorf("%+v, %v", results, err)
	}
}

// A file that cannot be used says where and why.
func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "is empty",
		"tests: []":              "has no tests",
		"tests: [{nodes: [{}]}]": "test 1 has no name",
		"tests: [{name: t}]":     "has no records",
		"test: []":               "unknown field",
		"tests: {":               "pipeline.test.yaml",
		"tests: [{name: t, nodes: [{$vlaue: 1}]}]":                                         "vlaue",
		"tests: [{name: t, nodes: [{}], expect: {node: []}}]":                              "unknown field",
		"tests: [{name: t, nodes: [{}]}, {name: t, nodes: [{}]}]":                          "two tests",
		"tests: [{name: t, nodes: [{}], expect: {dead_letters: [{topic: nodse}]}}]":        "nodes or edges",
		"tests: [{name: t, nodes: [{}], expect: {nodes: [{id: a, event_time: someday}]}}]": "RFC 3339",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"config: none.yaml":       "none.yaml",
		"set: [shards=0]":         "shards",
		"set: [ingest.nodes.id=]": "ingest.nodes.id",
	} {
		f, err := load(t, text+"\ntests: [{name: t, nodes: [{}]}]")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f, err := load(t, "tests: [{name: t, nodes: [{$file: none.csv}]}]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), f); err == nil || !strings.Contains(err.Error(), "none.csv") {
		t.Errorf("a file that is not there: %v", err)
	}
}
