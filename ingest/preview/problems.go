package preview

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"giantstream/ingest/decode"
)

// ErrMapping: the mapping does not fit the records.
var ErrMapping = errors.New("the mapping does not fit the records")

// Err returns ErrMapping if no record has a field that some record must have, or if most records would be dead letters.
// names are what users call the fields, such as --id; others are called as in the configuration.
func (p *Preview) Err(names map[string]string) error {
	var errs []error
	for _, s := range p.sides() {
		before := len(errs)
		for _, f := range s.Fields {
			if f.Required && f.Absent && !p.spare(s, &f) {
				errs = append(errs, errors.New(s.missing(&f, names[f.Field])))
			}
		}
		if n := s.dead(); 2*n > s.Records && len(errs) == before {
			f := s.Faults[slices.IndexFunc(s.Faults, func(f Fault) bool { return f.Records > f.applied })]
			errs = append(errs, fmt.Errorf("%d of the %d records that were read would be dead letters, such as %s: "+
				"%s%s", n, s.Records, f.Example, f.Message, f.asOneDocument()))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrMapping, errors.Join(errs...))
}

// sides are those of all inputs.
func (p *Preview) sides() []*Side {
	all := []*Side{&p.Nodes, &p.Edges}
	for i := range p.Attributes {
		all = append(all, &p.Attributes[i])
	}
	for i := range p.EdgeTopics {
		all = append(all, &p.EdgeTopics[i])
	}
	if p.Orders != nil {
		all = append(all, &p.Orders.Side)
	}
	return all
}

// spare reports whether records do without a field, unless its name looks like a mistake: one of several texts, of
// which another is there, as a catalog's newest few products may have no brand; or a weight or a time that edges of
// another topic have, as all of these are mapped alike.
func (p *Preview) spare(s *Side, f *Field) bool {
	if f.DidYouMean != "" {
		return false
	}
	switch f.Field {
	case "nodes.text":
		return slices.ContainsFunc(s.Fields, func(other Field) bool {
			return other.Field == f.Field && other.Filled.Filled > 0
		})
	case "edges.weight", "edges.event_time":
		return slices.ContainsFunc(append(p.EdgeTopics, p.Edges), func(of Side) bool {
			return slices.ContainsFunc(of.Fields, func(other Field) bool {
				return other.Field == f.Field && other.Filled.Filled > 0
			})
		})
	}
	return false
}

// asOneDocument says what to do with one JSON document over several lines, which is what its first line looks like.
func (f *Fault) asOneDocument() string {
	if f.Code != decode.BadJSON || !strings.HasSuffix(f.Example, ":1") {
		return ""
	}
	return "; a file of JSON has a record a line, or is one list of them: if this is another document, such as an " +
		"object with a list of products, write its records with jq: jq -c '.products[]' FILE > FILE.jsonl"
}

// elements says what to do where the records are elements of a list in the one record that there is.
func (s *Side) elements(f *Field) string {
	list, ok := strings.CutSuffix(f.DidYouMean, "[*]."+f.Path)
	if !ok || s.Records > 1 || f.Field != "nodes.id" && f.Field != "edges.src" && f.Field != "baskets.id" {
		return ""
	}
	return fmt.Sprintf("; write the elements of %s as records, with jq: jq -c '.%s[]' FILE > FILE.jsonl", list, list)
}

// QuotePath puts a path in quotes that a shell takes off.
func QuotePath(path string) string {
	if strings.Contains(path, `"`) {
		return "'" + path + "'"
	}
	return strconv.Quote(path)
}

// unmet reports whether the field of a condition for deletions looks like a mistake. Records need not have the field,
// so it is no error. One condition may be meant for nodes and edges, and only some of them have its field.
func (p *Preview) unmet(f *Field) bool {
	if !strings.HasSuffix(f.Field, ".deleted") || f.Path == "deleted" || !f.Absent {
		return false
	}
	return f.DidYouMean != "" || f.Named && !slices.ContainsFunc(p.sides(), func(s *Side) bool {
		return slices.ContainsFunc(s.Fields, func(other Field) bool {
			return other.Path == f.Path && other.Filled.Filled > 0 && strings.HasSuffix(other.Field, ".deleted")
		})
	})
}

// missing says that no record has a field.
func (s *Side) missing(f *Field, name string) string {
	if name == "" {
		name = f.Field
	}
	of := ""
	if s.Topic != "" {
		of = " of topic " + s.Topic
	}
	words := fmt.Sprintf("%s: no record%s has the field %q", name, of, f.Path)
	if s.More {
		words = fmt.Sprintf("%s: none of the first %d records%s has the field %q", name, s.Records, of, f.Path)
	}
	if s.dead() > 0 {
		words += fmt.Sprintf("; %d of the %d records that were read would be dead letters", s.dead(), s.Records)
	}
	if elements := s.elements(f); elements != "" {
		words += elements + "."
	} else if f.DidYouMean != "" {
		words += fmt.Sprintf("; did you mean %s?", QuotePath(f.DidYouMean))
	} else {
		words += "."
	}
	const most = 20
	seen := strings.Join(s.Seen[:min(len(s.Seen), most)], ", ")
	if len(s.Seen) > most {
		seen += ", …"
	}
	return words + " Fields seen: " + seen
}

// dead is how many records would be dead letters and say nothing.
func (s *Side) dead() (n int64) {
	for _, f := range s.Faults {
		n += f.Records - f.applied
	}
	return n
}

// Warnings say what may be a mistake, and need not be one.
func (p *Preview) Warnings() (out []string) {
	for _, s := range p.sides() {
		for _, f := range s.Fields {
			switch {
			case f.Required && f.Absent && p.spare(s, &f):
				out = append(out, s.missing(&f, ""))
			case p.unmet(&f):
				likely := ""
				if f.DidYouMean == "" {
					likely = ". That is right if none but deleted records have it"
				}
				out = append(out, s.missing(&f, "")+likely)
			}
			if f.Required && f.Filled.Filled == 0 && f.Records > 0 && !f.Absent {
				out = append(out, fmt.Sprintf("%s: the field %q is empty in all %d records that were read",
					f.Field, f.Path, f.Records))
			}
		}
	}
	if w := p.Texts.Warning(); w != "" {
		out = append(out, w)
	}
	if n := p.Nodes.Repeated; n > 0 {
		out = append(out, fmt.Sprintf("%d of %d node records have the id of an earlier record: of records with "+
			"the same id and time the last one counts", n, p.Nodes.Records))
	}
	out = append(out, p.Orders.warnings()...)
	out = append(out, p.Match.warnings("edges")...)
	for _, s := range p.Attributes {
		out = append(out, s.Match.warnings("attributes of topic "+s.Topic)...)
	}
	if p.Orders != nil {
		out = append(out, p.Orders.Match.warnings("orders")...)
	}
	return out
}
