package preview

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"giantstream/ingest/backfill"
	"giantstream/ingest/decode"
	"giantstream/internal/suggest"
	"giantstream/stream/mutation"
)

// Options of a preview.
type Options struct {
	Mapping decode.Mapping
	Limits  decode.Limits
	// Records bounds the records that are read of the nodes, and of the edges.
	Records int64
	// Rows is how many mapped records of each are kept to be shown.
	Rows int
	// Expected are the names of mapped fields that people have named, such as nodes.class. Some record must have each,
	// as it must have the ids, the far ends and the texts. Of those that decide about deletions that is only likely:
	// it may be that none but deleted records have them.
	Expected []string
	// Clock says which orders were placed in the future; nil is the system's.
	Clock func() time.Time
}

// Preview is what the first records say. Counts are of the records that were read.
type Preview struct {
	Nodes Side `json:"nodes"`
	Edges Side `json:"edges"`
	// Attributes are the topics that have nothing but attributes or vectors of nodes, by name.
	Attributes []Side `json:"attributes,omitempty"`
	// EdgeTopics are the topics of edges of one kind, by name.
	EdgeTopics []Side `json:"edge_topics,omitempty"`
	// Orders is nil if none are mapped.
	Orders *Orders `json:"orders,omitempty"`
	// Texts of the nodes.
	Texts Texts `json:"texts"`
	// Match compares the ids of edges with those of nodes, nil without either.
	Match *Match `json:"match,omitempty"`
}

// Side is what one input says.
type Side struct {
	// Topic of attributes or of edges of one kind, empty for another input.
	Topic   string   `json:"topic,omitempty"`
	Sources []Source `json:"sources"`
	Records int64    `json:"records"`
	// More: the sources have more records than were read.
	More   bool    `json:"more"`
	Fields []Field `json:"fields"`
	// Seen are the names of the fields in the values, mapped or not, in order, at most maxSeen.
	Seen []string `json:"fields_seen"`
	// Faults are what would be dead letters, by code.
	Faults []Fault `json:"dead_letters,omitempty"`
	// Rows are the first records as they would be mapped.
	Rows []Row `json:"rows,omitempty"`
	// Repeated is how many node records have the id of an earlier one: of them the last counts.
	Repeated int64 `json:"repeated_ids,omitempty"`
	// Links is how many edges the records state.
	Links int64 `json:"links"`
	// Kinds of the edges, most frequent first.
	Kinds []KindOfLinks `json:"kinds,omitempty"`
	// Vectors that are mapped.
	Vectors []Vector `json:"vectors,omitempty"`
	// Match compares the ids that orders or a topic of attributes name with those of nodes, nil without either. That
	// of all edges is in Preview.
	Match *Match `json:"match,omitempty"`
}

// KindOfLinks counts the edges that records state of a kind.
type KindOfLinks struct {
	Kind  string `json:"kind"`
	Links int64  `json:"links"`
}

// Source is a file, or a topic.
type Source struct {
	Name    string   `json:"name"`
	Records int64    `json:"records"`
	More    bool     `json:"more"`
	Notes   []string `json:"notes,omitempty"`
}

// Field is a mapped field.
type Field struct {
	decode.Filled
	// Required: some record must have it.
	Required bool `json:"required"`
	// Named: people have named it, so that they look for it.
	Named bool `json:"named"`
	// Absent: no record has it, not even without a value.
	Absent bool `json:"absent"`
	// DidYouMean is the field seen whose name is most like it, for a field without any value.
	DidYouMean string `json:"did_you_mean,omitempty"`
}

// Fault counts the records that would be dead letters for one reason.
type Fault struct {
	Code    decode.Code `json:"code"`
	Records int64       `json:"records"`
	Example string      `json:"example"` // where
	Message string      `json:"message"` // of the example
	// applied are those of Records of which the rest is applied, such as a list of links that has the item itself.
	applied int64
}

// Row is a mapped record: a node with its text and class, or the far ends of a source's edges.
type Row struct {
	Where string   `json:"where"`
	ID    string   `json:"id"`
	Text  string   `json:"text,omitempty"`
	Class string   `json:"class,omitempty"`
	Links []string `json:"links,omitempty"`
	Kind  string   `json:"kind,omitempty"`
	// Attributes are a JSON object, nil if the record has none.
	Attributes json.RawMessage `json:"attributes,omitempty"`
	// Weight of the links, nil if none is mapped.
	Weight  *float32 `json:"weight,omitempty"`
	Deleted bool     `json:"deleted,omitempty"`
}

// maxSeen bounds the field names that are kept.
const maxSeen = 200

// Collector makes a preview. It is not safe for concurrent use.
type Collector struct {
	nodes, edges Input
	attributes   map[string]*Input // by topic
	edgeTopics   map[string]*Input // those of one kind
	orders       *orders           // nil if none are mapped
	texts        textCounts
	ids          map[string]bool // of nodes
	ends         map[string]bool // of edges
}

// Input collects the first records of an input.
type Input struct {
	Side
	options *Options
	columns backfill.SampleOptions // says which matter in a table
	decoder *decode.Decoder
	tally   *decode.Tally
	names   map[string]bool // of fields seen; true: with a value
	faults  map[decode.Code]*Fault
	kinds   map[string]int64    // edges by kind
	named   map[string]bool     // ids that attributes or orders are about
	out     []mutation.Mutation // scratch
	// take is given what a record states, if anything.
	take func(where string, out []mutation.Mutation)
}

// New returns a collector.
func New(o Options) (*Collector, error) {
	c := &Collector{ids: map[string]bool{}, ends: map[string]bool{}, attributes: map[string]*Input{},
		edgeTopics: map[string]*Input{}}
	nodes, err := decode.Nodes(o.Mapping.Nodes, o.Limits, 1)
	if err != nil {
		return nil, err
	}
	edges, err := decode.Edges(o.Mapping.Edges, o.Limits, 1)
	if err != nil {
		return nil, err
	}
	for topic, m := range o.Mapping.Attributes {
		d, err := decode.Attributes(m, mutation.Further, o.Limits, 1)
		if err != nil {
			return nil, err
		}
		in := &Input{Side: Side{Topic: topic, Vectors: newVectors(m.Vectors)}}
		in.init(&o, d, backfill.SampleOptions{Attributes: &m}, func(where string, out []mutation.Mutation) {
			in.named[out[0].ID] = true
			in.show(new(in.rowOf(where, out)))
		})
		c.attributes[topic] = in
	}
	for topic, m := range o.Mapping.EdgeTopics {
		d, err := decode.Further(&o.Mapping, topic, mutation.Further, o.Limits, 1)
		if err != nil {
			return nil, err
		}
		in := &Input{Side: Side{Topic: topic}}
		in.init(&o, d, backfill.SampleOptions{Edges: &m}, func(where string, out []mutation.Mutation) {
			c.takeEdges(in, where, out)
		})
		c.edgeTopics[topic] = in
	}
	if c.orders, err = newOrders(&o); err != nil {
		return nil, err
	}
	c.nodes.Vectors = newVectors(o.Mapping.Nodes.Vectors)
	c.nodes.init(&o, nodes, backfill.SampleOptions{}, c.takeNode)
	c.edges.init(&o, edges, backfill.SampleOptions{Edges: &o.Mapping.Edges},
		func(where string, out []mutation.Mutation) { c.takeEdges(&c.edges, where, out) })
	return c, nil
}

func (s *Input) init(o *Options, d *decode.Decoder, columns backfill.SampleOptions,
	take func(string, []mutation.Mutation)) {
	s.options, s.columns, s.decoder, s.tally, s.take = o, columns, d, d.NewTally(), take
	d.CountInto(s.tally)
	s.names, s.faults, s.kinds = map[string]bool{}, map[decode.Code]*Fault{}, map[string]int64{}
	s.named = map[string]bool{}
}

// Nodes returns the input of nodes.
func (c *Collector) Nodes() *Input { return &c.nodes }

// Edges returns the input of edges.
func (c *Collector) Edges() *Input { return &c.edges }

// Orders returns the input of orders, which must be mapped.
func (c *Collector) Orders() *Input { return &c.orders.Input }

// Attributes returns the input of a topic of attributes, which must be mapped.
func (c *Collector) Attributes(topic string) *Input { return c.attributes[topic] }

// EdgeTopic returns the input of a topic of edges of one kind, which must be mapped.
func (c *Collector) EdgeTopic(topic string) *Input { return c.edgeTopics[topic] }

// add takes a record.
func (s *Input) add(where string, r decode.Record, skipWithoutText bool) {
	out, fault := s.decoder.Decode(r, s.out[:0])
	s.out = out
	if skipWithoutText && fault == nil && s.decoder.Textless() {
		s.decoder.Uncount()
		return
	}
	s.Records++
	see(s.names, s.decoder.Row(r.Value))
	if fault != nil {
		if f := s.fault(where, fault.Code, fault.Message); len(out) > 0 {
			f.applied++
		}
	}
	if len(out) > 0 {
		s.take(where, out)
	}
}

// rowOf returns what a record states of a node or of its edges.
func (s *Input) rowOf(where string, out []mutation.Mutation) Row {
	row := Row{Where: where, ID: out[0].ID, Text: out[0].Text, Class: out[0].Class, Kind: out[0].Kind.Name}
	if a := out[0].Attributes; a != "" && a != mutation.NoAttributes {
		row.Attributes = json.RawMessage(a)
	}
	for i := range out {
		m := &out[i]
		s.addVectors(m.Vectors)
		row.Deleted = row.Deleted || m.Op == mutation.DeleteNode || m.Op == mutation.DeleteEdge ||
			m.Op == mutation.ClearEdges
		for other, kind := range m.Ends() {
			row.Links = append(row.Links, other)
			s.kinds[kind.Name]++
		}
		if m.Other != "" {
			row.Links = append(row.Links, m.Other)
			if m.Op != mutation.DeleteEdge {
				s.kinds[m.Kind.Name]++
			}
		}
		if m.Weight.Stated() {
			row.Weight = new(m.Weight.Float())
		}
	}
	s.Links += int64(len(row.Links))
	return row
}

func (c *Collector) takeNode(where string, out []mutation.Mutation) {
	s := &c.nodes
	row := s.rowOf(where, out)
	if !row.Deleted {
		if c.ids[row.ID] {
			s.Repeated++
		}
		c.ids[row.ID] = true
		c.texts.add(row.Text)
	}
	for _, end := range row.Links {
		c.ends[end] = true
	}
	s.show(&row)
}

func (c *Collector) takeEdges(s *Input, where string, out []mutation.Mutation) {
	row := s.rowOf(where, out)
	c.ends[row.ID] = true
	for _, end := range row.Links {
		c.ends[end] = true
	}
	s.show(&row)
}

// show keeps a row, unless there are enough.
func (s *Input) show(row *Row) {
	if len(s.Rows) < s.options.Rows {
		s.Rows = append(s.Rows, *row)
	}
}

// fault counts a record that would be a dead letter.
func (s *Input) fault(where string, code decode.Code, message string) *Fault {
	f := s.faults[code]
	if f == nil {
		f = &Fault{Code: code, Example: where, Message: message}
		s.faults[code] = f
	}
	f.Records++
	return f
}

// Result returns the preview of all that was collected.
func (c *Collector) Result() *Preview {
	p := &Preview{Nodes: c.nodes.result(), Edges: c.edges.result(), Texts: c.texts.result()}
	for _, topic := range slices.Sorted(maps.Keys(c.attributes)) {
		in := c.attributes[topic]
		in.Match = c.match(in.named, in.More)
		p.Attributes = append(p.Attributes, in.result())
	}
	for _, topic := range slices.Sorted(maps.Keys(c.edgeTopics)) {
		p.EdgeTopics = append(p.EdgeTopics, c.edgeTopics[topic].result())
	}
	if c.orders != nil {
		c.orders.Match = c.match(c.orders.named, c.orders.More)
		p.Orders = c.orders.summary()
	}
	p.Match = c.match(c.ends, c.edges.More ||
		slices.ContainsFunc(p.EdgeTopics, func(s Side) bool { return s.More }))
	return p
}

// match compares the ids that an input names with those of nodes. more: the input has more records than were read.
func (c *Collector) match(named map[string]bool, more bool) *Match {
	if len(c.ids) == 0 || len(named) == 0 {
		return nil
	}
	m := match(c.ids, named)
	m.someNodes, m.Partial = c.nodes.More, c.nodes.More || more
	return m
}

func (s *Input) result() Side {
	out := s.Side
	names := make([]string, 0, len(s.names))
	for name := range s.names {
		names = append(names, name)
	}
	slices.Sort(names)
	out.Seen = names[:min(len(names), maxSeen)]
	for _, f := range s.tally.Fields(s.decoder) {
		field := Field{Filled: f, Named: slices.Contains(s.options.Expected, f.Field)}
		switch f.Field {
		case "nodes.id", "nodes.text", "edges.src", "edges.dst", "attributes.id", "baskets.id", "baskets.items":
			field.Required = true
		default:
			field.Required = field.Named && !strings.HasSuffix(f.Field, ".deleted")
		}
		if f.Filled == 0 && f.Records > 0 {
			field.Absent, field.DidYouMean = absent(f.Path, names, s.names)
		}
		out.Fields = append(out.Fields, field)
	}
	for _, f := range s.faults {
		out.Faults = append(out.Faults, *f)
	}
	delete(s.kinds, "")
	for kind, n := range s.kinds {
		out.Kinds = append(out.Kinds, KindOfLinks{kind, n})
	}
	slices.SortFunc(out.Kinds, func(a, b KindOfLinks) int {
		return cmp.Or(cmp.Compare(b.Links, a.Links), strings.Compare(a.Kind, b.Kind))
	})
	out.Kinds = out.Kinds[:min(len(out.Kinds), maxKinds)]
	slices.SortFunc(out.Faults, func(a, b Fault) int {
		if a.Records != b.Records {
			return int(b.Records - a.Records)
		}
		return strings.Compare(string(a.Code), string(b.Code))
	})
	return out
}

// absent reports whether a field without any value is not there at all, and what may have been meant.
func absent(path string, names []string, seen map[string]bool) (bool, string) {
	is := func(name string) bool { return decode.PlainPath(name) == decode.PlainPath(path) }
	var others []string
	for _, name := range names {
		switch {
		case !is(name):
			others = append(others, name)
		case !seen[name]:
			return false, "" // there, always empty
		case name != path:
			return true, name // there, in another shape
		}
	}
	plain := make([]string, len(others))
	for i := range others {
		plain[i] = decode.PlainPath(others[i])
	}
	// The right key at another place is likelier than another key.
	likely := plain
	last := lastKey(decode.PlainPath(path))
	if slices.ContainsFunc(plain, func(p string) bool { return lastKey(p) == last }) {
		likely = slices.DeleteFunc(slices.Clone(plain), func(p string) bool { return lastKey(p) != last })
		if len(likely) == 1 {
			return true, others[slices.Index(plain, likely[0])]
		}
	}
	if near := suggest.Nearest(decode.PlainPath(path), likely); near != "" {
		return true, others[slices.Index(plain, near)]
	}
	return true, ""
}

func lastKey(plain string) string { return plain[strings.LastIndexByte(plain, '.')+1:] }

// epoch is the time of records of files.
var epoch = time.Unix(0, 0)
