package preview

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Comparison says what another mapping makes of the same records of an input.
type Comparison struct {
	// Input is "nodes", "edges", "orders" or the name of a further topic.
	Input string `json:"input"`
	// Records were mapped by both.
	Records int64 `json:"records"`
	// More: the input has more records than were read.
	More bool `json:"more"`
	// DeadBefore and DeadAfter are how many records would be dead letters.
	DeadBefore int64 `json:"dead_letters_before"`
	DeadAfter  int64 `json:"dead_letters_after"`
	// Changes are what the records state differently, without what all state alike.
	Changes []Change `json:"changes,omitempty"`
}

// Change counts the records that state something else.
type Change struct {
	// What is "id", "text", "class", "links", "kind", "attributes", "weight" or "deletion".
	What    string `json:"what"`
	Records int64  `json:"records"`
	// Where, ID, Before and After are those of the first of them.
	Where  string `json:"where"`
	ID     string `json:"id"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Compare compares what two mappings make of the first records of the same inputs. Records are compared as far as both
// previews keep rows of them (Options.Rows).
func Compare(before, after *Preview) (out []Comparison) {
	was := map[string]*Side{}
	for _, s := range before.namedSides() {
		was[s.name] = s.Side
	}
	for _, s := range after.namedSides() {
		if old := was[s.name]; old != nil && s.Records > 0 {
			out = append(out, compareSides(s.name, old, s.Side))
		}
	}
	return out
}

// namedSide is a side with the name of its input.
type namedSide struct {
	name string
	*Side
}

func (p *Preview) namedSides() (out []namedSide) {
	for _, s := range p.sides() {
		name := s.Topic
		switch {
		case s == &p.Nodes:
			name = "nodes"
		case s == &p.Edges:
			name = "edges"
		case p.Orders != nil && s == &p.Orders.Side:
			name = "orders"
		}
		out = append(out, namedSide{name, s})
	}
	return out
}

func compareSides(name string, before, after *Side) Comparison {
	c := Comparison{Input: name, More: after.More, DeadBefore: before.dead(), DeadAfter: after.dead()}
	was := map[string]*Row{}
	for i := range before.Rows {
		was[before.Rows[i].Where] = &before.Rows[i]
	}
	for _, aspect := range aspects {
		change := Change{What: aspect.name}
		for i := range after.Rows {
			now := &after.Rows[i]
			old := was[now.Where]
			if old == nil || reflect.DeepEqual(aspect.of(old), aspect.of(now)) {
				continue
			}
			if change.Records++; change.Records == 1 {
				change.Where, change.ID = now.Where, now.ID
				change.Before, change.After = words(aspect.of(old)), words(aspect.of(now))
			}
		}
		if change.Records > 0 {
			c.Changes = append(c.Changes, change)
		}
	}
	for i := range after.Rows {
		if was[after.Rows[i].Where] != nil {
			c.Records++
		}
	}
	return c
}

// aspects are what a row states, each by its name.
var aspects = []struct {
	name string
	of   func(*Row) any
}{
	{"id", func(r *Row) any { return r.ID }},
	{"text", func(r *Row) any { return r.Text }},
	{"class", func(r *Row) any { return r.Class }},
	{"links", func(r *Row) any { return r.Links }},
	{"kind", func(r *Row) any { return r.Kind }},
	{"attributes", func(r *Row) any { return r.Attributes }},
	{"weight", func(r *Row) any { return r.Weight }},
	{"deletion", func(r *Row) any { return r.Deleted }},
}

// words shows what a row states for people.
func words(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, ", ")
	case json.RawMessage:
		return string(v)
	case *float32:
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(float64(*v), 'g', -1, 32)
	}
	return fmt.Sprint(v)
}
