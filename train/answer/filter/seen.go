package filter

// Seen are values of an attribute.
type Seen struct {
	*column
	numbers map[float64]struct{}
	texts   map[string]struct{} // of a list its elements
}

// Seen returns no values yet of an attribute, and an Error if there is none of this name.
func (t *Table) Seen(attribute string) (*Seen, error) {
	c, err := t.column(attribute, Outside)
	if err != nil {
		return nil, err
	}
	return &Seen{c, map[float64]struct{}{}, map[string]struct{}{}}, nil
}

// Distinct returns no values yet of an attribute that tells nodes apart, which cannot have lists.
func (t *Table) Distinct(attribute string) (*Seen, error) {
	s, err := t.Seen(attribute)
	if err == nil && s.Type == Strings {
		return nil, fault(Outside, "%s has lists: answers are distinct by attributes with one value", s.Name)
	}
	return s, err
}

// Add adds the value of node n, and reports true, if it was not there before; of a list, if no element of it was. A
// node without the attribute adds nothing, and true is reported.
func (s *Seen) Add(n int32) bool {
	switch v := s.value(int(n)).(type) {
	case nil:
		return true
	case float64:
		return add(s.numbers, v)
	case []string:
		known := s.hasAny(v)
		for _, element := range v {
			add(s.texts, element)
		}
		return !known
	}
	if s.numeric() { // a time
		return add(s.numbers, s.column.numbers[n])
	}
	return add(s.texts, s.entries[s.codes[n]].text)
}

func add[K comparable](all map[K]struct{}, one K) bool {
	before := len(all)
	all[one] = struct{}{}
	return len(all) > before
}

// hasAny says whether one of the texts is a value.
func (s *Seen) hasAny(texts []string) bool {
	for _, text := range texts {
		if _, seen := s.texts[text]; seen {
			return true
		}
	}
	return false
}

// Drop takes the nodes out of a set that have a value, or a list with one.
func (s *Seen) Drop(from Set) {
	if s.numeric() {
		for n, v := range s.column.numbers[:min(len(s.column.numbers), 64*len(from))] {
			if _, seen := s.numbers[v]; seen {
				from.Clear(int32(n))
			}
		}
		return
	}
	drop := make([]bool, len(s.entries))
	for code, e := range s.entries {
		switch {
		case e.nodes == 0:
		case s.Type == Strings:
			drop[code] = s.hasAny(e.list)
		default:
			_, drop[code] = s.texts[e.text]
		}
	}
	for n, code := range s.codes[:min(len(s.codes), 64*len(from))] {
		if drop[code] {
			from.Clear(int32(n))
		}
	}
}
