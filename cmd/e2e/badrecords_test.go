package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"giantstream/ingest/decode"
)

// badLine is a line that cannot be used.
type badLine struct {
	value string
	code  decode.Code
}

// longText is over the limit for texts by default, and not over the one for records.
var longText = strings.TrimSpace(strings.Repeat("long text ", 30_000))

var badNodes = []badLine{
	{`{"id":"b1","text":"cut off`, decode.BadJSON},
	{`{"id":"b2","text":"good"} and more`, decode.BadJSON},
	{"{\"id\":\"b3\",\"text\":\"bad \xff bytes\"}", decode.BadUTF8},
	{`{"id":"b4","text":"\ud800 is half a character"}`, decode.BadUTF8},
	{`{"text":"no id"}`, decode.MissingID},
	{`{"id":null,"text":"null id"}`, decode.MissingID},
	{`{"id":"","text":"empty id"}`, decode.BadID},
	{`{"id":"b5","text":{"title":"an object"}}`, decode.BadType},
	{`["no","object"]`, decode.BadType},
	{`{"id":"b6","text":"when?","at":"yesterday"}`, decode.BadEventTime},
	{fmt.Sprintf(`{"id":"long","text":%q,"at":%d}`, longText, epoch), decode.TextTooLarge},
	{`{"id":"huge","text":"` + strings.Repeat("huge text ", 1<<20) + `"}`, decode.RecordTooLarge}, // 10 MB
}

var badEdges = []badLine{
	{`no JSON`, decode.BadJSON},
	{"{\"src\":\"n0001\",\"dst\":\"\xc3\x28\"}", decode.BadUTF8},
	{`{"dst":"n0001"}`, decode.MissingSrc},
	{`{"src":"n0001"}`, decode.MissingDst},
	{`{"src":"n0001","dst":"n0001"}`, decode.SelfLoop},
	// Only the loop is left out.
	{fmt.Sprintf(`{"src":"n0002","dst":["n0003","n0002"],"at":%d}`, epoch+5000), decode.SelfLoop},
}

// Two input files full of bad records: every bad one ends in the dead letters, with its reason and
// its bytes; every good one counts.
func TestBadRecords(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	h := newAuthor(3, 150).beginning() // duplicates and out of order, too
	h.nodes = append(h.nodes, nodeEvent{ID: "never seen", At: epoch, Deleted: true})
	h.edges = append(h.edges,
		edgeEvent{Src: "n0004", Dst: "nobody knows", At: epoch + 5000},
		edgeEvent{Src: "n0005", Dst: "never linked", At: epoch + 5000, Deleted: true})
	files := writeMixed(t, inputs, h)
	h.edges = append(h.edges, edgeEvent{Src: "n0002", Dst: "n0003", At: epoch + 5000})
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	place := []string{"-c", config, "--store", dir}

	var report struct {
		Sent struct {
			Nodes    int64 `json:"nodes"`
			Edges    int64 `json:"edges"`
			Oversize int64 `json:"oversize"`
		} `json:"sent"`
		DeadLetters struct {
			Total  int64                 `json:"total"`
			ByCode map[decode.Code]int64 `json:"by_code"`
		} `json:"dead_letters"`
	}
	succeedJSON(t, &report, slices.Concat([]string{"run", "--until-idle", "--json"}, place, files)...)

	checkGraph(t, newestRows(t, openStore(t, dir)), graphOf(h))
	checkLog(t, dir)

	// By value as the broker or the file had it: why it was refused.
	got := map[string]decode.Code{}
	for _, l := range deadLetters(t, place) {
		got[string(l.Value)] = l.Code
	}
	want := map[string]decode.Code{}
	byCode := map[decode.Code]int64{}
	for _, bad := range slices.Concat(badNodes, badEdges) {
		want[kept(bad.value)] = bad.code
		byCode[bad.code]++
	}
	sameMap(t, "dead letter", got, want)
	sameMap(t, "dead letters by code", report.DeadLetters.ByCode, byCode)
	if total := int64(len(want)); report.DeadLetters.Total != total {
		t.Errorf("the report counts %d dead letters, want %d", report.DeadLetters.Total, total)
	}
	const oversize = 1
	if got, want := report.Sent.Nodes, int64(len(h.nodes)+len(badNodes)-oversize); got != want {
		t.Errorf("the report counts %d node records sent, want %d", got, want)
	}
	if got, want := report.Sent.Edges, int64(len(h.edges)-1+len(badEdges)); got != want {
		t.Errorf("the report counts %d edge records sent, want %d", got, want)
	}
	if report.Sent.Oversize != oversize {
		t.Errorf("the report counts %d records too large to send, want %d", report.Sent.Oversize, oversize)
	}

	for _, l := range deadLetters(t, slices.Concat(place, []string{"--code", string(decode.RecordTooLarge)})) {
		file := filepath.Join(inputs, "nodes.jsonl")
		if !strings.HasPrefix(l.Origin, file+":") || l.Size != int64(len(badNodes[len(badNodes)-1].value)) {
			t.Errorf("the record of 10 MB has origin %s and size %d", l.Origin, l.Size)
		}
	}
}

// A record that was refused because of a limit is accepted once the limit is raised and its dead
// letter is replayed.
func TestReplayAfterRaisedLimit(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	h := newAuthor(4, 150).beginning()
	files := writeMixed(t, inputs, h)
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	place := []string{"-c", config, "--store", dir}
	run := []string{"run", "--until-idle"}
	succeed(t, slices.Concat(run, place, files)...)

	raised := strings.Replace(smallConfig, "ingest:\n", "ingest:\n  limits: {text_bytes: 512KiB}\n", 1)
	writeFile(t, config, raised)
	replay := []string{"dlq", "replay", "--code", string(decode.TextTooLarge)}
	if out := succeed(t, slices.Concat(replay, place)...); !strings.Contains(out, "1 record") {
		t.Errorf("dlq replay prints %q", out)
	}
	succeed(t, slices.Concat(run, place)...)

	h.nodes = append(h.nodes, nodeEvent{ID: "long", Text: longText, At: epoch})
	h.edges = append(h.edges, edgeEvent{Src: "n0002", Dst: "n0003", At: epoch + 5000})
	o := readOutcome(t, dir)
	checkGraph(t, o.rows, graphOf(h))
	if _, ok := o.published["long"]; !ok {
		t.Error("no embedding was published for the node of the replayed record")
	}
	if o.doc.Generation != 2 {
		t.Errorf("generation %d, want 2", o.doc.Generation)
	}
}

// writeMixed writes the good and the bad in turns, as two files, and returns the flags that send
// them.
func writeMixed(t *testing.T, dir string, h history) []string {
	t.Helper()
	nodes, edges := filepath.Join(dir, "nodes.jsonl"), filepath.Join(dir, "edges.jsonl")
	writeLines(t, nodes, h.nodes)
	writeLines(t, edges, h.edges)
	mix(t, nodes, badNodes)
	mix(t, edges, badEdges)
	return []string{"--nodes", nodes, "--edges", edges}
}

// mix inserts a bad line after every 20th good one, and the rest at the end.
func mix(t *testing.T, path string, bad []badLine) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, line := range strings.SplitAfter(string(content), "\n") {
		if i%20 == 19 && len(bad) > 0 {
			out.WriteString(bad[0].value + "\n")
			bad = bad[1:]
		}
		out.WriteString(line)
	}
	for _, b := range bad {
		out.WriteString(b.value + "\n")
	}
	writeFile(t, path, out.String())
}

// kept returns what a dead letter keeps of a value: all of it or, of one that no topic would take,
// the beginning.
func kept(value string) string {
	const most, beginning = 900_000, 64 << 10 // docs/format/dead-letters.md
	if len(value) > most {
		return value[:beginning]
	}
	return value
}
