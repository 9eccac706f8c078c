package ingest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"giantstream/ingest/backfill"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/sink"
	"giantstream/stream/mutation"
)

// A cell is a value with what it means, whatever a format makes of it.
type cell struct {
	kind cellKind
	text string // of texts, and of UUIDs
	raw  []byte // of bytes
	// opaque: the type says that the bytes are no text.
	opaque bool
	n      *big.Int      // of integers; of decimals, unscaled; of days
	s      int           // digits of a decimal after its point
	f      float64       // of floats
	bits   int           // of a float
	b      bool          // of booleans
	t      time.Time     // of timestamps
	d      time.Duration // of times of a day
}

type cellKind int

const (
	aNull cellKind = iota
	aText
	aBinary
	anInteger
	aDecimal
	aFloat
	aBool
	aDay
	aTimestamp
	aTimeOfDay
)

// meant is what a field makes of a cell: a value, nothing, or a dead letter.
type meant struct {
	value        string
	absent, dead bool
}

var deadLetter = meant{dead: true}

// written is the cell as an id or a text, of which not every one is good.
func (c *cell) written() string {
	switch c.kind {
	case aText:
		return c.text
	case aBinary:
		return string(c.raw)
	case anInteger:
		return c.n.String()
	case aDecimal:
		return new(big.Rat).SetFrac(c.n, pow10(c.s)).FloatString(c.s)
	case aFloat:
		return c.float()
	case aBool:
		return strconv.FormatBool(c.b)
	case aDay:
		return time.Unix(c.n.Int64()*86400, 0).UTC().Format("2006-01-02")
	case aTimestamp:
		return c.t.UTC().Format(time.RFC3339Nano)
	case aTimeOfDay:
		return time.Unix(0, 0).UTC().Add(c.d).Format("15:04:05.999999999")
	}
	return ""
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// exact is from where on several integers are the same float.
func (c *cell) exact() float64 { return map[int]float64{16: 1 << 11, 32: 1 << 24, 64: 1 << 53}[c.bits] }

// float is the shortest number that gives the float back.
func (c *cell) float() string {
	size := math.Abs(c.f)
	switch {
	case size == 0:
		return "0"
	case size >= c.exact() || size < 1e-6:
		return strconv.FormatFloat(c.f, 'e', -1, max(32, c.bits))
	}
	return strconv.FormatFloat(c.f, 'f', -1, max(32, c.bits))
}

// integer returns the integer that a number is, without doubt.
func (c *cell) integer() (*big.Int, bool) {
	switch c.kind {
	case anInteger:
		return c.n, true
	case aDecimal:
		whole, rest := new(big.Int).QuoRem(c.n, pow10(c.s), new(big.Int))
		return whole, rest.Sign() == 0
	case aFloat:
		if math.Abs(c.f) < c.exact() && c.f == math.Trunc(c.f) {
			return big.NewInt(int64(c.f)), true
		}
	}
	return nil, false
}

func (c *cell) empty() bool { return c.kind == aNull || c.kind == aFloat && math.IsNaN(c.f) }

// bad: no field takes the cell.
func (c *cell) bad() bool {
	return c.kind == aFloat && math.IsInf(c.f, 0) || c.kind == aBinary && (c.opaque || !utf8.Valid(c.raw))
}

func (c *cell) asID() meant {
	switch {
	case c.empty():
		return deadLetter // the records have no key
	case c.bad() || c.kind == aBool:
		return deadLetter
	case c.kind == anInteger || c.kind == aDecimal || c.kind == aFloat:
		n, ok := c.integer()
		if !ok {
			return deadLetter
		}
		return meant{value: n.String()}
	}
	id := c.written()
	if id == "" || len(id) > decode.MaxIDBytes || strings.Contains(id, "\x00") {
		return deadLetter
	}
	return meant{value: id}
}

func (c *cell) asText() meant {
	switch {
	case c.empty():
		return meant{absent: true}
	case c.bad() || c.kind == aBool:
		return deadLetter
	}
	return meant{value: c.written()}
}

// sinceEpoch gives the microseconds since 1970 that a bare integer means, nil for none.
func sinceEpoch(n *big.Int) *big.Int {
	if !n.IsInt64() || n.Int64() == math.MinInt64 {
		return nil
	}
	if t, err := time.Parse("20060102", n.String()); err == nil && t.Year() >= 1900 && t.Year() < 2200 {
		return big.NewInt(t.UnixMicro())
	}
	us := new(big.Int).Set(n)
	switch digits := new(big.Int).Abs(n); {
	case digits.Cmp(pow10(11)) < 0:
		us.Mul(us, big.NewInt(1e6))
	case digits.Cmp(pow10(14)) < 0:
		us.Mul(us, big.NewInt(1e3))
	case digits.Cmp(pow10(17)) >= 0:
		us.Div(us, big.NewInt(1e3)) // Euclidean: down
	}
	return us
}

// asEventTime gives microseconds since 1970.
func (c *cell) asEventTime() meant {
	var us *big.Int
	switch c.kind {
	case aTimestamp:
		us = new(big.Int).Mul(big.NewInt(c.t.Unix()), big.NewInt(1e6))
		us.Add(us, big.NewInt(int64(c.t.Nanosecond()/1000)))
	case aDay:
		us = new(big.Int).Mul(c.n, big.NewInt(86400*1e6))
	case aText, aBinary:
		if c.bad() {
			return deadLetter
		}
		if text := c.written(); len(text) >= 8 && strings.Trim(text, "0123456789") == "" {
			n, _ := new(big.Int).SetString(text, 10)
			if us = sinceEpoch(n); us == nil {
				return deadLetter
			}
			break
		}
		t, err := time.Parse(time.RFC3339Nano, c.written())
		if err != nil {
			if t, err = time.Parse("2006-01-02", c.written()); err != nil {
				return deadLetter
			}
		}
		us = big.NewInt(t.UnixMicro())
	default:
		if c.empty() {
			return meant{absent: true}
		}
		n, ok := c.integer()
		if !ok {
			return deadLetter
		}
		if us = sinceEpoch(n); us == nil {
			return deadLetter
		}
	}
	year1 := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	year10000 := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	if !us.IsInt64() || us.Int64() < year1 || us.Int64() >= year10000 {
		return deadLetter
	}
	return meant{value: us.String()}
}

func (c *cell) asDeleted() meant {
	switch {
	case c.empty():
		return meant{value: "false"}
	case c.kind == aBool:
		return meant{value: strconv.FormatBool(c.b)}
	case !c.bad() && (c.kind == aText || c.kind == aBinary):
		if word := strings.ToLower(c.written()); word == "true" || word == "false" {
			return meant{value: word}
		}
	}
	return deadLetter
}

// row is a row of a table: a node.
type row struct {
	id, at, deleted, text cell
	list                  []cell // further texts
}

// want is what the row says: a mutation, or "dead letter".
func (r *row) want() string {
	id, at, deleted := r.id.asID(), r.at.asEventTime(), r.deleted.asDeleted()
	if id.dead || at.dead || deleted.dead {
		return "dead letter"
	}
	if at.absent {
		at.value = strconv.FormatInt(now.UnixMicro(), 10)
	}
	if deleted.value == "true" {
		return fmt.Sprintf("delete %q at %s", id.value, at.value)
	}
	var texts []string
	for _, c := range append([]cell{r.text}, r.list...) {
		text := c.asText()
		if text.dead {
			return "dead letter"
		}
		if text.value != "" {
			texts = append(texts, text.value)
		}
	}
	return fmt.Sprintf("node %q at %s: %q", id.value, at.value, strings.Join(texts, "\n"))
}

// typesMapping maps the columns of a table whose kinds of values are in their names, as a schema of
// Avro or Protobuf has one for each type.
func typesMapping(r *table) decode.Mapping {
	return decode.Mapping{Nodes: decode.NodeMapping{ID: r.column(0), EventTime: r.column(1), Deleted: r.column(2),
		Text: []string{r.column(3), r.column(4)}}}
}

// said is what the product makes of a value.
func said(t *testing.T, m decode.Mapping, value []byte) string {
	t.Helper()
	limits := kafkatest.Limits()
	limits.RecordBytes = 1 << 20
	d, err := decode.Nodes(m.Nodes, limits, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, fault := d.Decode(decode.Record{Value: value, Time: now}, nil)
	switch {
	case fault != nil:
		return "dead letter"
	case got[0].Op == mutation.DeleteNode:
		return fmt.Sprintf("delete %q at %d", got[0].ID, got[0].Version.EventTime)
	}
	return fmt.Sprintf("node %q at %d: %q", got[0].ID, got[0].Version.EventTime, got[0].Text)
}

// typed is a type of a format's column, and how a cell of its kind is kept in it. What a format lacks is
// nil or "".
type typed struct {
	name string
	draw func(r *rand.Rand) cell

	node    func() parquet.Node
	parquet func(c *cell) parquet.Value

	avro   string
	asAvro func(c *cell) any

	proto   string
	asProto func(c *cell) any
}

// sound reports whether a type is one that people use in a role.
func (k *typed) sound(role int) bool {
	number := strings.Contains(k.name, "int") || strings.HasPrefix(k.name, "decimal") || k.name == "double"
	switch role {
	case 0:
		return number || k.name == "string" || k.name == "uuid" || k.name == "bson"
	case 1:
		return number || strings.Contains(k.name, "timestamp") || strings.HasPrefix(k.name, "date")
	case 2:
		return k.name == "bool" || k.name == "enum"
	}
	return k.name != "bool"
}

// roles of columns; the last is repeated.
var roles = []string{"id", "at", "deleted", "text", "list"}

// table is rows with a type for each role.
type table struct {
	types [5]*typed
	rows  []row
}

func (t *table) column(role int) string { return roles[role] + "_" + t.types[role].name }

// cells of a row by role, but those of the list.
func (r *row) cells() [4]*cell { return [4]*cell{&r.id, &r.at, &r.deleted, &r.text} }

// drawTable draws a table. Of the types, kinds takes those of one format (0: of all) and, if sound,
// those that people use in a role.
func drawTable(r *rand.Rand, format int, sound bool, kinds [5]byte, rows int) *table {
	t := &table{rows: make([]row, rows)}
	for role, k := range kinds {
		var of []*typed
		for i := range allTypes {
			c := &allTypes[i]
			has := [...]bool{true, c.node != nil, c.avro != "", c.proto != ""}[format]
			if has && (!sound || c.sound(role)) {
				of = append(of, c)
			}
		}
		t.types[role] = of[int(k)%len(of)]
	}
	for i := range t.rows {
		for role, c := range t.rows[i].cells() {
			if *c = t.types[role].draw(r); r.IntN(8) == 0 {
				*c = cell{}
			}
		}
		for range r.IntN(4) {
			t.rows[i].list = append(t.rows[i].list, t.types[4].draw(r))
		}
	}
	return t
}

// FuzzTypes makes tables of random types and values, and reads them from Parquet, Avro, Protobuf, CSV and
// JSON: every row means the same in all of them, or is a dead letter where its value has no meaning.
func FuzzTypes(f *testing.F) {
	for i := range allTypes {
		k := byte(i)
		n := byte(len(allTypes))
		for format := range byte(4) {
			f.Add(uint64(i), format, false, k, (k+3)%n, (k+5)%n, (k+7)%n, k)
			f.Add(uint64(i), format, true, k, (k*3)%n, (k*5)%n, (k*7)%n, (k*11)%n)
			f.Add(uint64(i), format, true, (k*7)%n, k, (k*3)%n, k, k)
		}
	}
	schemas := newTypesSchemas(f)
	f.Fuzz(func(t *testing.T, seed uint64, of byte, sound bool, id, at, deleted, text, list byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows := drawTable(r, int(of)%4, sound, [5]byte{id, at, deleted, text, list}, 1+r.IntN(12))
		for format, read := range map[string]func(*testing.T, *rand.Rand, *table) []string{
			"Parquet": readTableParquet, "Avro": schemas.readAvro, "Protobuf": schemas.readProtobuf,
			"CSV": readTableCSV, "JSON": readTableJSON,
		} {
			got := read(t, r, rows)
			if got == nil {
				continue // a type that the format lacks
			}
			if len(got) != len(rows.rows) {
				t.Fatalf("%s: %d records of %d rows", format, len(got), len(rows.rows))
			}
			for i := range got {
				if want := rows.rows[i].want(); got[i] != want && got[i] != skipped {
					t.Errorf("%s, id %s, event time %s, deleted %s, text %s, list %s, row %+v:\n got %s\nwant %s", format,
						rows.types[0].name, rows.types[1].name, rows.types[2].name, rows.types[3].name,
						rows.types[4].name, rows.rows[i], got[i], want)
				}
			}
		}
	})
}

// skipped: the row cannot be written in this format, or has no types there that could say what it means.
const skipped = "skipped"

// memory is a file in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// readFile reads a file of a table by the product's reader.
func readFile(t *testing.T, name string, data []byte, m decode.Mapping) (got []string) {
	t.Helper()
	limits := kafkatest.Limits()
	limits.RecordBytes = 1 << 20
	in := backfill.Input{Name: name, Size: int64(len(data)), Modified: now,
		Open: func(context.Context) (sink.Object, error) { return memory{bytes.NewReader(data)}, nil }}
	_, err := backfill.ReadSample(t.Context(), &in, backfill.SampleOptions{Mapping: m, Limits: limits,
		Records: 1 << 30, Bytes: 1 << 40}, func(s backfill.Sampled) {
		if s.Bad != "" {
			got = append(got, "dead letter")
			return
		}
		got = append(got, said(t, m, s.Value))
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

func readTableParquet(t *testing.T, r *rand.Rand, table *table) []string {
	group := parquet.Group{}
	for role, k := range table.types {
		if k.node == nil {
			return nil
		}
		node := parquet.Optional(k.node())
		if r.IntN(2) == 0 {
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		}
		if role == 4 {
			node = parquet.List(node)
		}
		group[table.column(role)] = node
	}
	schema := parquet.NewSchema("table", group)
	columns := map[string]int{}
	for i, path := range schema.Columns() {
		columns[path[0]] = i
	}
	var out bytes.Buffer
	w := parquet.NewWriter(&out, schema, parquet.DataPageVersion(1+r.IntN(2)), parquet.PageBufferSize(1+r.IntN(200)))
	for i := range table.rows {
		values := make([][]parquet.Value, 5)
		for role, c := range table.rows[i].cells() {
			v, definition := parquet.NullValue(), 0
			if c.kind != aNull {
				v, definition = table.types[role].parquet(c), 1
			}
			column := columns[table.column(role)]
			values[column] = []parquet.Value{v.Level(0, definition, column)}
		}
		column := columns[table.column(4)]
		for k := range table.rows[i].list {
			v := table.types[4].parquet(&table.rows[i].list[k])
			values[column] = append(values[column], v.Level(min(k, 1), 2, column))
		}
		if len(table.rows[i].list) == 0 {
			values[column] = []parquet.Value{parquet.NullValue().Level(0, 0, column)}
		}
		var all parquet.Row
		for _, v := range values {
			all = append(all, v...)
		}
		if _, err := w.WriteRows([]parquet.Row{all}); err != nil {
			t.Fatal(err)
		}
		if r.IntN(8) == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, "table.parquet", out.Bytes(), typesMapping(table))
}

// readTableCSV writes each cell as text. CSV has no types, so what is no id or text by its type may be
// one in CSV; only the rows that mean something by their types are compared.
func readTableCSV(t *testing.T, _ *rand.Rand, table *table) []string {
	var out bytes.Buffer
	var names []string
	for role := range 4 {
		names = append(names, table.column(role))
	}
	fmt.Fprintln(&out, strings.Join(names, ","))
	var kept []int
	for i := range table.rows {
		good := !strings.Contains(table.rows[i].want(), "dead letter") && len(table.rows[i].list) == 0
		var cells []string
		for role, c := range table.rows[i].cells() {
			s := ""
			if !c.empty() {
				s = c.written()
			}
			if n, ok := c.integer(); ok && role < 2 {
				s = n.String()
			}
			// A row over several lines may be taken for a stray quote; \r\n is a newline.
			good = good && !strings.ContainsAny(s, "\r\n") && !c.bad()
			cells = append(cells, `"`+strings.ReplaceAll(s, `"`, `""`)+`"`)
		}
		if good {
			kept = append(kept, i)
			fmt.Fprintln(&out, strings.Join(cells, ","))
		}
	}
	m := typesMapping(table)
	m.Nodes.Text = m.Nodes.Text[:1]
	return spread(t, len(table.rows), kept, readFile(t, "table.csv", out.Bytes(), m))
}

// spread gives what was read of the kept rows its place among all.
func spread(t *testing.T, rows int, kept []int, got []string) []string {
	t.Helper()
	if len(got) != len(kept) {
		t.Fatalf("%d records of %d rows", len(got), len(kept))
	}
	all := make([]string, rows)
	for i := range all {
		all[i] = skipped
	}
	for i, at := range kept {
		all[at] = got[i]
	}
	return all
}

// json is the cell as a producer of JSON writes it.
func (c *cell) json() string {
	switch {
	case c.empty():
		return "null"
	case c.kind == aBinary && c.bad():
		return `{"base64":"` + base64.StdEncoding.EncodeToString(c.raw) + `"}`
	case c.kind == aFloat && math.IsInf(c.f, 0):
		return `{"infinite":true}`
	case c.kind == anInteger, c.kind == aDecimal, c.kind == aFloat, c.kind == aBool:
		return c.written()
	}
	b, _ := json.Marshal(c.written())
	return string(b)
}

func readTableJSON(t *testing.T, _ *rand.Rand, table *table) []string {
	var out bytes.Buffer
	for i := range table.rows {
		out.WriteByte('{')
		for role, c := range table.rows[i].cells() {
			fmt.Fprintf(&out, "%q:%s,", table.column(role), c.json())
		}
		var list []string
		for k := range table.rows[i].list {
			list = append(list, table.rows[i].list[k].json())
		}
		fmt.Fprintf(&out, "%q:[%s]}\n", table.column(4), strings.Join(list, ","))
	}
	return readFile(t, "table.jsonl", out.Bytes(), typesMapping(table))
}

func int96(t time.Time) deprecated.Int96 {
	day := t.Unix() / 86400
	if t.Unix() < 0 && t.Unix()%86400 != 0 {
		day--
	}
	nanos := uint64(t.Sub(time.Unix(day*86400, 0)))
	return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(day + 2440588)}
}
