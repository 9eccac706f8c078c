package backfill

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// readCSV returns the rows that became objects, by their id, and the lines that did not.
func readCSV(t testing.TB, data []byte, limit int) (rows map[string]string, bad []record) {
	t.Helper()
	c, err := newCSVReader(bytes.NewReader(data), limit, columns{})
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]string{}
	last := int64(0)
	for {
		rec, err := c.next()
		if errors.Is(err, io.EOF) {
			return rows, bad
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.line <= last {
			t.Fatalf("line %d after %d", rec.line, last)
		}
		last = rec.line
		var v struct{ ID, Text string }
		if rec.over != nil || json.Unmarshal(rec.value, &v) != nil {
			rec.value = bytes.Clone(rec.value)
			bad = append(bad, rec)
			continue
		}
		rows[v.ID] = v.Text
	}
}

func TestCSVQuotes(t *testing.T) {
	for name, test := range map[string]struct {
		csv  string
		rows map[string]string
		bad  []string
	}{
		"a quote inside a cell": {"a1,5\" pipe\na2,x\n", map[string]string{"a1": `5" pipe`, "a2": "x"}, nil},
		"two quotes":            {"a1,5\" and 6\"\na2,x\n", map[string]string{"a1": `5" and 6"`, "a2": "x"}, nil},
		"quoted": {"a1,\"x, \"\"y\"\"\r\nz\"\r\na2,\"\"\n",
			map[string]string{"a1": "x, \"y\"\nz", "a2": ""}, nil},
		"not closed": {"a1,\"pipe\na2,x\na3,y", map[string]string{"a2": "x", "a3": "y"},
			[]string{"a1,\"pipe"}},
		"text after a quote":           {"a1,\"5\" pipe\na2,x\n", map[string]string{"a1": "5 pipe", "a2": "x"}, nil},
		"text after a quote and lines": {"a1,\"x\ny\" z\na2,x\n", map[string]string{"a2": "x"}, []string{"a1,\"x", "y\" z"}},
		"closed by a stray quote": {"a1,\"pipe\na2,x\na3,5\"\na4,y\n",
			map[string]string{"a2": "x", "a3": `5"`, "a4": "y"}, []string{"a1,\"pipe"}},
		"prose over lines": {"a1,\"Dear all,\nsincerely, me\"\na2,x\n",
			map[string]string{"a1": "Dear all,\nsincerely, me", "a2": "x"}, nil},
		"cells missing":                  {"a1\na2,x\na3,y,z\n", map[string]string{"a2": "x"}, []string{"a1", "a3,y,z"}},
		"a quote at the end of the file": {"a1,x\na2,\"", map[string]string{"a1": "x"}, []string{"a2,\""}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, bad := readCSV(t, []byte("id,text\n"+test.csv), 1000)
			if !maps.Equal(rows, test.rows) {
				t.Errorf("rows %q, want %q", rows, test.rows)
			}
			var lines []string
			for _, rec := range bad {
				lines = append(lines, string(rec.value))
			}
			if !slices.Equal(lines, test.bad) {
				t.Errorf("not rows: %q, want %q", lines, test.bad)
			}
		})
	}
}

// TestCSVRowOverTheLimit: a row is bounded by the limit, and costs its first line.
func TestCSVRowOverTheLimit(t *testing.T) {
	data := "id,text\na1,\"" + strings.Repeat("long line\n", 20) + "\"\na2,x\na3," + strings.Repeat("y", 200) + "\na4,z\n"
	rows, bad := readCSV(t, []byte(data), 100)
	if want := map[string]string{"a2": "x", "a4": "z"}; !maps.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if last := bad[len(bad)-1]; last.over == nil || last.over.size != 203 {
		t.Errorf("the line over the limit: %+v", last)
	}
}

// TestCSVGarbageCostsItsLinesAlone damages k lines of a file at random. Every row that has none of
// these lines must arrive as it was.
func TestCSVGarbageCostsItsLinesAlone(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		lines := []string{"id,text"}
		owner := []int{-1} // the row of each line
		want := map[string]string{}
		for i := range 5 + r.IntN(60) {
			id, text := fmt.Sprintf("n%03d", i), randomText(r)
			for _, line := range strings.Split(encodeRow(r, id, text), "\n") {
				lines, owner = append(lines, line), append(owner, i)
			}
			want[id] = text
		}
		for range 1 + r.IntN(4) {
			at := 1 + r.IntN(len(lines)-1)
			lines[at] = damage(r, lines[at])
			delete(want, fmt.Sprintf("n%03d", owner[at]))
		}
		rows, _ := readCSV(t, []byte(strings.Join(lines, "\n")), 4000)
		for id, text := range want {
			if got, ok := rows[id]; !ok || got != text {
				t.Fatalf("seed %d: row %s is %q (%v), want %q, in:\n%s", seed, id, got, ok, text,
					strings.Join(lines, "\n"))
			}
		}
	}
}

// randomText has quotes, commas and newlines.
func randomText(r *rand.Rand) string {
	words := []string{"red", "pen", `5"`, "a, b", "\n", `"so"`, "é", "x,", "and"}
	var text []string
	for range 1 + r.IntN(6) {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// encodeRow writes a row as encoding/csv does or, where that can be read, without quotes.
func encodeRow(r *rand.Rand, id, text string) string {
	if !strings.ContainsAny(text, ",\n") && text[0] != '"' && r.IntN(2) == 0 {
		return id + "," + text
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{id, text}) // to memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// damage puts quotes, commas and other bytes somewhere in a line.
func damage(r *rand.Rand, line string) string {
	for range 1 + r.IntN(3) {
		junk := []string{`"`, `""`, `"""`, `,"`, `",`, "\x00", "\xff", "{", ",", `\`, "\r"}[r.IntN(11)]
		at := r.IntN(len(line) + 1)
		if r.IntN(3) == 0 {
			at = max(0, strings.Index(line, ",")+1) // the start of a cell
		}
		line = line[:at] + junk + line[at:]
	}
	return line
}

// Of two columns of one name, each row would give the one whose cell is not empty.
func TestAMappedColumnIsThereOnce(t *testing.T) {
	const header = "id,price,price,note,note\n"
	_, err := newCSVReader(strings.NewReader(header), 100, columns{mapped: []string{"id", "price"}})
	if err == nil || !strings.Contains(err.Error(), `the column "price" is there twice`) {
		t.Errorf("two columns that are mapped: %v", err)
	}
	if _, err := newCSVReader(strings.NewReader(header), 100, columns{mapped: []string{"id"}}); err != nil {
		t.Errorf("two columns that are not: %v", err)
	}
}
