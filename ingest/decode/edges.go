package decode

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"giantstream/stream/mutation"
)

// Where the further fields of edges are.
const (
	slotWeight = slotText + iota
	slotKindOfEdge
	edgeEnd
	edgeSlots = edgeEnd - slotText
)

// edgeKinds says which kind the edges of a record have.
type edgeKinds struct {
	path     string // of a field that says it
	constant mutation.Kind
	directed []string
}

func kindsOf(m *EdgeMapping) (k edgeKinds, err error) {
	k.directed = m.Directed
	for _, name := range m.Directed {
		if err := checkKind(name); err != nil {
			return k, err
		}
	}
	if m.Kind == "" || m.Kind[0] != '"' {
		if k.path = m.Kind; k.path != "" && m.Mode == Replace {
			return k, errors.New("a record of mode replace has all edges of its source, so their kind is a constant " +
				"in double quotes")
		}
		return k, nil
	}
	name, err := strconv.Unquote(m.Kind)
	if err != nil {
		return k, fmt.Errorf("cannot read the constant %s", m.Kind)
	}
	k.constant = k.named(name)
	return k, checkKind(name)
}

// EdgePath leads to the far ends of edges of one kind, "" for none.
type EdgePath struct{ Kind, Path string }

// ParseEdgePath reads an EdgePath that is written [KIND=]PATH. A path with an equals sign needs one before it.
func ParseEdgePath(text string) (e EdgePath, err error) {
	kind, path := "", text
	if parts := splitOutside(text, "="); len(parts) > 1 {
		kind, path = parts[0], text[len(parts[0])+1:]
	}
	if _, err := ParsePath(path); err != nil {
		return e, fmt.Errorf("%q: write PATH or KIND=PATH: %w", text, err)
	}
	return EdgePath{Kind: kind, Path: path}, checkKind(kind)
}

// EdgeTopic is a topic that has edges of one kind. Src and Dst are "" where they are mapped as in the topic of all
// kinds.
type EdgeTopic struct{ Topic, Kind, Src, Dst string }

// ParseEdgeTopic reads an EdgeTopic that is written TOPIC/KIND[=SRC,DST].
func ParseEdgeTopic(text string) (e EdgeTopic, err error) {
	const want = "must be TOPIC/KIND[=SRC,DST], as in views/also_viewed or views/also_viewed=seen,then[*]"
	what, paths, mapped := strings.Cut(text, "=")
	topic, kind, ok := strings.Cut(what, "/")
	if !ok || topic == "" || kind == "" {
		return e, errors.New(want)
	}
	e.Topic, e.Kind = topic, kind
	if mapped {
		ends := splitOutside(paths, ",")
		if len(ends) != 2 || ends[0] == "" || ends[1] == "" {
			return e, errors.New(want)
		}
		e.Src, e.Dst = ends[0], ends[1]
		src, err := ParsePath(e.Src)
		if err == nil && src.wild() {
			err = fmt.Errorf("path %q: [*] gives several values where one is needed", e.Src)
		}
		if err == nil {
			_, err = ParsePath(e.Dst)
		}
		if err != nil {
			return e, err
		}
	}
	return e, checkKind(kind)
}

// endPath is an EdgePath of node records.
type endPath struct {
	path string
	kind mutation.Kind
}

func (d *Decoder) mapEnds(m *NodeMapping) error {
	kinds := edgeKinds{directed: m.Directed}
	for _, e := range m.Edges {
		if slices.ContainsFunc(d.ends, func(other endPath) bool { return other.path == e.Path }) {
			return fmt.Errorf("path %q is given twice", e.Path)
		}
		d.ends = append(d.ends, endPath{e.Path, kinds.named(e.Kind)})
	}
	return nil
}

// endSlot is where the far ends of a path are, after the vectors.
func (d *Decoder) endSlot(i int) slot {
	return slotText + slot(d.texts+len(d.attributes)+len(d.vectors)+i)
}

// listEdges lets a node record state the edges that it carries, of all kinds. refused: not even the good ones, because
// the list cannot be read, and those of the node's earlier record must stay.
func (d *Decoder) listEdges(m *mutation.Mutation) (first *Fault, refused bool) {
	m.HasEdges = true
	n := 0
	for i := range d.ends {
		n += len(d.scan.captured[d.endSlot(i)])
	}
	if n > d.limits.EdgesPerRecord {
		return d.tooManyEdges(), true
	}
	for i, e := range d.ends {
		others, fault := d.farEnds(m.ID, d.scan.captured[d.endSlot(i)])
		if len(others) == 0 && fault != nil && fault.Code == BadType {
			return fault, true
		}
		if first == nil {
			first = fault
		}
		if len(d.ends) == 1 {
			m.Others, m.Kind = others, e.kind
			break
		}
		m.Others = append(m.Others, others...)
		m.Kinds = append(m.Kinds, slices.Repeat([]mutation.Kind{e.kind}, len(others))...)
	}
	return first, false
}

func (d *Decoder) tooManyEdges() *Fault {
	return faultf(TooManyEdges, "the record has more than %d edges, which is the limit", d.limits.EdgesPerRecord)
}

func checkKind(name string) error {
	switch {
	case len(name) > mutation.MaxKindBytes:
		return fmt.Errorf("the kind %s has %d bytes; the limit is %d", quote(name), len(name), mutation.MaxKindBytes)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("the kind %s contains NUL", quote(name))
	}
	return nil
}

func (k *edgeKinds) named(name string) mutation.Kind {
	return mutation.Kind{Name: name, Directed: name != "" && slices.Contains(k.directed, name)}
}

// kind reads the kind of a record's edges; an absent one is that of edges without kinds.
func (d *Decoder) kind() (mutation.Kind, *Fault) {
	v, ok := d.one(slotKindOfEdge)
	if !ok {
		return d.kinds.constant, nil
	}
	name, ok := d.plain(v)
	if !ok {
		return mutation.Kind{}, faultf(BadKind, "the kind is %s; it must be a string, a number or a boolean", v.kind)
	}
	if err := checkKind(name); err != nil {
		return mutation.Kind{}, faultf(BadKind, "%v", err)
	}
	return d.kinds.named(name), nil
}

// edgeOps turns the edges of an edge record into mutations.
func (d *Decoder) edgeOps(m mutation.Mutation, deleted bool, dst []mutation.Mutation) ([]mutation.Mutation, *Fault) {
	ends := d.scan.captured[slotEnds]
	if d.mode == Replace && deleted && len(ends) == 0 {
		m.Op = mutation.ClearEdges
		return append(dst, m), nil
	}
	if len(ends) == 0 && !d.wild && !d.scan.listed[slotEnds] {
		return dst, faultf(MissingDst, "no dst in the value")
	}
	var fault *Fault
	if m.Kind, fault = d.kind(); fault != nil {
		return dst, fault
	}
	if deleted {
		return d.eachEdge(mutation.DeleteEdge, m, ends, dst)
	}
	if d.weighed {
		if m.Weight, fault = d.weight(); fault != nil {
			return dst, fault
		}
	}
	if d.mode != Replace {
		return d.eachEdge(mutation.PutEdge, m, ends, dst)
	}
	others, fault := d.farEnds(m.ID, ends)
	if fault != nil && len(others) == 0 {
		return dst, fault
	}
	m.Op, m.Others = mutation.SetEdges, others
	return append(dst, m), fault
}

// weight reads the weight of a record's edges. An absent one, and an empty one as CSV has it, is 1.
func (d *Decoder) weight() (mutation.Weight, *Fault) {
	v, ok := d.one(slotWeight)
	text := bytes.TrimSpace(v.raw)
	switch {
	case !ok || v.kind == kindString && len(text) == 0:
		return mutation.WeightOf(1), nil
	case v.kind != kindNumber && v.kind != kindString:
		return 0, faultf(BadWeight, "the weight is %s; it must be a number", v.kind)
	}
	f, like, ok := single(v)
	if !ok || f < 0 {
		return 0, faultf(BadWeight, "the weight is %s; it must be a finite number, 0 or more, in single precision%s",
			quote(string(text)), like)
	}
	return mutation.WeightOf(f), nil
}

// eachEdge appends a mutation for each valid far end.
func (d *Decoder) eachEdge(op mutation.Op, m mutation.Mutation, ends []value, dst []mutation.Mutation) (
	[]mutation.Mutation, *Fault) {
	others, fault := d.farEnds(m.ID, ends)
	m.Op = op
	for _, o := range others {
		m.Other = o
		dst = append(dst, m)
	}
	return dst, fault
}

// maxNamed is how many bad edges the message of a fault names.
const maxNamed = 10

// farEnds returns the valid ones of a record's far ends. The fault has the code of the first
// invalid one and names several.
func (d *Decoder) farEnds(id string, ends []value) ([]string, *Fault) {
	if len(ends) == 0 {
		return nil, nil
	}
	if len(ends) > d.limits.EdgesPerRecord {
		return nil, d.tooManyEdges()
	}
	others := make([]string, 0, len(ends))
	var first *Fault
	var named []string
	bad, loops := 0, 0
	for i, v := range ends {
		other, fault := d.idOf(v, "dst")
		if fault == nil && other == id {
			loops++
			fault = faultf(SelfLoop, "the edge leads from %s to itself", quote(id))
		}
		if fault == nil {
			others = append(others, other)
			continue
		}
		if bad++; bad == 1 {
			first = fault
		}
		if bad <= maxNamed {
			named = append(named, fmt.Sprintf("[%d] %v", i, fault))
		}
	}
	if bad == 0 {
		return others, nil
	}
	if bad > maxNamed {
		named = append(named, "…")
	}
	if len(ends) > 1 {
		first = faultf(first.Code, "%d of %d edges left out: %s", bad, len(ends), strings.Join(named, "; "))
	}
	first.Loops = loops == bad
	return others, first
}
