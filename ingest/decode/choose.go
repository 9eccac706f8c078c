package decode

// choice keeps, of the values that a path has captured, those in elements whose field has a value:
// texts[locale=de].value.
type choice struct {
	values slot
	// elements and fields are where the scanner puts the elements of the list, and the field of each.
	elements, fields slot
	value            string
}

// mapChoices appends to the fields what the scanner must capture, from a slot on, to choose elements. Paths that
// cannot be parsed are left to compile.
func (d *Decoder) mapChoices(fields []mappedField, next slot) ([]mappedField, slot) {
	for _, f := range fields {
		p, err := ParsePath(f.path)
		if err != nil {
			continue
		}
		elements := make(Path, 0, len(p))
		for _, s := range p {
			where, value := s.where, s.value
			s.where, s.value = "", ""
			if elements = append(elements, s); where == "" {
				continue
			}
			d.choices = append(d.choices, choice{f.slot, next, next + 1, value})
			fields = append(fields,
				mappedField{name: f.name, path: elements.String(), slot: next, many: true},
				mappedField{name: f.name, path: elements.String() + "." + where, slot: next + 1, many: true})
			next += 2
		}
	}
	return fields, next
}

// choose drops the values that are not in elements with the value. All that is captured is in the order of the
// document, and elements at one path do not nest.
func (d *Decoder) choose() *Fault {
	for _, c := range d.choices {
		elements, fields, values := d.scan.captured[c.elements], d.scan.captured[c.fields], d.scan.captured[c.values]
		if n := d.scan.limit; len(elements) > n || len(values) > n {
			code, limit := TooManyEdges, "limits.edges_per_record"
			if d.orders != nil {
				code, limit = TooManyItems, "baskets.max_items"
			}
			return faultf(code, "a list that the mapping chooses from has more than %d elements (ingest.%s)", n, limit)
		}
		kept := values[:0]
		for _, e := range elements {
			end := e.element + len(e.raw)
			if e.kind == kindList { // whose raw goes on after it
				end = e.element + 1
			}
			chosen := false
			for ; len(fields) > 0 && fields[0].element < end; fields = fields[1:] {
				if fields[0].element == e.element { // of a repeated field the last one counts
					chosen = d.is(fields[0], c.value)
				}
			}
			for ; len(values) > 0 && values[0].element < end; values = values[1:] {
				keep := chosen && e.kind == kindObject
				if values[0].element < e.element {
					keep = values[0].misplaced
				}
				if keep {
					kept = append(kept, values[0])
				}
			}
		}
		for _, v := range values {
			if v.misplaced { // in the place of the list
				kept = append(kept, v)
			}
		}
		d.scan.captured[c.values] = kept
	}
	return nil
}

// is compares a value as text.
func (d *Decoder) is(v value, text string) bool {
	if v.kind == kindNumber {
		v.raw = integral(v.raw)
	}
	got, ok := d.plain(v)
	return ok && got == text
}
