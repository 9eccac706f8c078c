package backfill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"giantstream/ingest/decode"
	"giantstream/sink"
)

// text is a file in memory.
type text struct{ *bytes.Reader }

func (t text) Close() error { return nil }

// readAll returns the records of a file, and what is said about it. Lines that are no rows begin
// with !.
func readAll(t *testing.T, name, content string, o ReadOptions, m decode.Mapping) ([]string, description) {
	t.Helper()
	in := Input{Name: name, Read: o}
	as, compression, err := in.format()
	if err != nil {
		t.Fatal(err)
	}
	c := nodeColumns(&m.Nodes)
	if m.Edges.Src != "" {
		c = edgeColumns(&m.Edges)
	}
	c.separator = o.ListSeparator
	var obj sink.Object = text{bytes.NewReader([]byte(content))}
	r, _, err := reader(obj, as, compression, 10_000, c, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			return got, r.describe()
		}
		if err != nil {
			t.Fatal(err)
		}
		value := string(rec.value)
		if rec.bad != "" {
			value = "!" + value
		}
		got = append(got, value)
	}
}

func encodeUTF16(order binary.AppendByteOrder, s string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + s)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// TestFormats reads files as spreadsheets, shops and pandas write them.
func TestFormats(t *testing.T) {
	bought := decode.Mapping{Edges: decode.EdgeMapping{Src: "sku", Dst: "also[*]"}}
	plain := decode.Mapping{Edges: decode.EdgeMapping{Src: "sku", Dst: "also"}}
	node := decode.Mapping{Nodes: decode.NodeMapping{ID: "id", Text: []string{"text", "tags[*]", "meta.brand"}}}
	for name, c := range map[string]struct {
		file, content string
		options       ReadOptions
		mapping       decode.Mapping
		want          string // records, one a line
		notes         string
	}{
		"a list by its separator": {"p.csv", "sku,also\nA,B; C;;\nB,\nC,A\n", ReadOptions{ListSeparator: ";"}, bought,
			`{"sku":"A","also":["B","C"]}` + "\n" + `{"sku":"B","also":[]}` + "\n" + `{"sku":"C","also":["A"]}`, ""},
		"far ends without [*]": {"p.csv", "sku,also\nA,B|C\n", ReadOptions{ListSeparator: "|"}, plain,
			`{"sku":"A","also":["B","C"]}`, ""},
		"no separator": {"p.csv", "sku,also\nA,B;C\n", ReadOptions{}, bought, `{"sku":"A","also":["B;C"]}`, ""},
		"a JSON list": {"p.csv", "sku,also\nA,\"[\"\"B\"\", 2]\"\n", ReadOptions{}, bought,
			`{"sku":"A","also":["B", 2]}`, ""},
		"a Python list": {"p.csv", "sku,also\nA,\"['B', \"\"C's\"\", 3]\"\nB,[]\n", ReadOptions{}, bought,
			`{"sku":"A","also":["B","C's",3]}` + "\n" + `{"sku":"B","also":[]}`, ""},
		"no list, although it has brackets": {"p.csv", "sku,also\nA,['B' or C]\n", ReadOptions{}, bought,
			`{"sku":"A","also":["['B' or C]"]}`, ""},
		"texts are no lists unless mapped so": {"p.csv", "id,text,tags\na,\"[1]\",\"x;y\"\n", ReadOptions{ListSeparator: ";"},
			node, `{"id":"a","text":"[1]","tags":["x","y"]}`, ""},
		"a JSON object": {"p.csv", "id,meta\na,\"{\"\"brand\"\":\"\"Acme\"\"}\"\n", ReadOptions{}, node,
			`{"id":"a","meta":{"brand":"Acme"}}`, ""},
		"semicolons": {"p.csv", "id;text\na;x, y\n", ReadOptions{}, node, `{"id":"a","text":"x, y"}`,
			"';' between cells"},
		"tabs": {"p.tsv", "id\ttext\na\tx, y\n", ReadOptions{}, node, `{"id":"a","text":"x, y"}`,
			`'\t' between cells`},
		"bars": {"p.csv", "id|text\na|x\n", ReadOptions{}, node, `{"id":"a","text":"x"}`,
			"'|' between cells"},
		"commas, with others":  {"p.csv", "id,text,a;b;c;d\na,x;y,\n", ReadOptions{}, node, `{"id":"a","text":"x;y"}`, ""},
		"spaces in the header": {"p.csv", "id, text \na,x\n", ReadOptions{}, node, `{"id":"a","text":"x"}`, ""},
		"byte order mark":      {"p.csv", "\ufeffid,text\na,é\n", ReadOptions{}, node, `{"id":"a","text":"é"}`, ""},
		"UTF-16, low byte first": {"p.csv", encodeUTF16(binary.LittleEndian, "id;text\r\na;é漢😀\r\n"), ReadOptions{}, node,
			`{"id":"a","text":"é漢😀"}`, "';' between cells, UTF-16"},
		"UTF-16, high byte first": {"n.jsonl", encodeUTF16(binary.BigEndian, `{"id":"é"}`), ReadOptions{}, node,
			`{"id":"é"}`, "UTF-16"},
		"half a pair in UTF-16": {"n.jsonl", "\xff\xfe\x00\xd8a\x00", ReadOptions{}, node, "\xffa", "UTF-16"},
		"lines that end in CR alone": {"p.csv", "id,text\ra,\"x\ry\"\rb,z\r", ReadOptions{}, node,
			`{"id":"a","text":"x\ny"}` + "\n" + `{"id":"b","text":"z"}`, ""},
		"Windows-1252": {"p.csv", "id,text\na,caf\xe9 \x80 5\n", ReadOptions{}, node, `{"id":"a","text":"café € 5"}`,
			"not UTF-8, read as Windows-1252"},
		"Windows-1252, late": {"p.csv", "id,text\n" + strings.Repeat("a,xxxxxxxxxxxxxxxx\n", 20_000) + "a,caf\xe9\n",
			ReadOptions{},
			node, strings.Repeat(`{"id":"a","text":"xxxxxxxxxxxxxxxx"}`+"\n", 20_000) + `{"id":"a","text":"café"}`,
			"not UTF-8, read as Windows-1252"},
		"UTF-8 with a bad byte": {"p.csv", "id,text\na,é\nb,\xe9\n", ReadOptions{}, node,
			`{"id":"a","text":"é"}` + "\n" + `{"id":"b","text":"` + "\xe9" + `"}`, ""},
		"rows of empty cells": {"p.csv", "id,text\na,x\n,\n,\n", ReadOptions{}, node, `{"id":"a","text":"x"}`, ""},
		"a JSON list of records": {"p.json", "\n[ {\"id\": \"a]\\\"}\"},\n  {\n\"id\": [1,{}]}\n]\n", ReadOptions{}, node,
			`{"id": "a]\"}"}` + "\n" + `{"id":[1,{}]}`, "one JSON list: numbers in dead letters count its elements"},
		"more after the list": {"p.json", "[{}]\n{\"id\":1}", ReadOptions{}, node, "{}\n{\"id\":1}",
			"one JSON list: numbers in dead letters count its elements"},
		"lines that are lists": {"p.jsonl", "[1]\n[2]\n", ReadOptions{}, node, "[1]\n[2]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, about := readAll(t, c.file, c.content, c.options, c.mapping)
			if strings.Join(got, "\n") != c.want {
				t.Errorf("%.500q, want %.500q", got, c.want)
			}
			if notes := strings.Join(about.notes, ", "); notes != c.notes {
				t.Errorf("notes %q, want %q", notes, c.notes)
			}
		})
	}
}

// TestListWithoutEnd: what a cut-off list has is given, and the error says what is wrong.
func TestListWithoutEnd(t *testing.T) {
	for _, content := range []string{`[{"id":1},{"id":2}`, `[{"id":1},{"id":`, `[{"id":1},`} {
		r, _, err := reader(text{bytes.NewReader([]byte(content))}, jsonLines, "", 1000, columns{}, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.next()
		if string(rec.value) != `{"id":1}` || err != nil {
			t.Errorf("%s: %q, %v", content, rec.value, err)
		}
		for err == nil {
			_, err = r.next()
		}
		if !errors.Is(err, errListEnd) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestListElementOverTheLimit: an element is kept up to the limit, and the next one is read.
func TestListElementOverTheLimit(t *testing.T) {
	content := `[{"id":"` + strings.Repeat("x", 5000) + `"},{"id":2}]`
	r, _, err := reader(text{bytes.NewReader([]byte(content))}, jsonLines, "", 1000, columns{}, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.next()
	if err != nil || rec.over == nil || rec.over.size != 5009 {
		t.Errorf("%+v, %v", rec.over, err)
	}
	if rec, err = r.next(); err != nil || string(rec.value) != `{"id":2}` || rec.line != 2 {
		t.Errorf("%+v, %v", rec, err)
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(`[{"a":"\\"},{"b":[1,2]},3]x`))
	f.Add([]byte("\xff\xfe[\x00{\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, _, err := reader(text{bytes.NewReader(data)}, jsonLines, "", 100, columns{}, func(int64) {})
		if err != nil {
			return
		}
		for last := int64(0); ; {
			rec, err := r.next()
			if err != nil {
				return
			}
			if rec.line <= last {
				t.Fatalf("line %d after %d", rec.line, last)
			}
			last = rec.line
			if rec.over == nil && len(rec.value) > 100 {
				t.Fatalf("%d bytes", len(rec.value))
			}
		}
	})
}

// Files that are no text, whatever their names say, are refused by what they are.
func TestFilesThatAreNoText(t *testing.T) {
	for begin, want := range map[string]string{
		"PK\x03\x04\x14\x00":       "Excel workbook: save the table as CSV",
		"\xd0\xcf\x11\xe0\xa1\xb1": "Excel workbook: save the table as CSV",
		"PAR1\x15\x04":             "ends in .parquet",
		"\x1f\x8b\x08\x00":         "ends in .gz",
		"\x28\xb5\x2f\xfd\x04":     "ends in .zst",
		"%PDF-1.7\n":               "a PDF document",
	} {
		for _, name := range []string{"p.csv", "p.jsonl", "p.csv.gz"} {
			in := Input{Name: name}
			as, compression, err := in.format()
			if err != nil {
				t.Fatal(err)
			}
			want := want
			if compression != "" {
				if want = "not compressed by gzip"; begin[0] == 0x1f {
					continue // it is
				}
			}
			var obj sink.Object = text{bytes.NewReader([]byte(begin + strings.Repeat("\x00", 100)))}
			_, _, err = reader(obj, as, compression, 10_000, columns{}, func(int64) {})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q as %s: %v, want %q", begin, name, err, want)
			}
		}
	}
}
