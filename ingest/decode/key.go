package decode

import (
	"unicode/utf8"
)

// keyReader finds the mapped fields in keys that are JSON objects, as Kafka Connect and Debezium write
// them: {"sku": "P1"}, or {"schema": {…}, "payload": {"sku": "P1"}}. A key has the columns of a row's
// primary key and nothing around them, so the mapped path product.sku leads to its field sku.
type keyReader struct {
	root *pathNode
	scan scanner
	// field is the name that the path of the id ends in, "" if it ends in an index.
	field string
}

// Where keyReader's scanner puts what it finds.
const (
	keySchema slot = iota
	keyPayload
	keyID // the whole path, then its last name
	keyIDName
	keyEnds
	payloadID
	payloadIDName
	payloadEnds
	keySlots
)

// newKeyReader returns a reader for the paths of an id and, for edges, of the far ends.
func newKeyReader(id, ends string) (*keyReader, error) {
	k := &keyReader{scan: scanner{captured: make([][]value, keySlots), listed: make([]bool, keySlots)}}
	fields := []mappedField{{path: "schema", slot: keySchema}, {path: "payload", slot: keyPayload}}
	path, err := ParsePath(id)
	if err != nil {
		return nil, err
	}
	if !path.optional() {
		fields = append(fields, mappedField{path: id, slot: keyID}, mappedField{path: "payload." + id, slot: payloadID})
	}
	if k.field = path[len(path)-1].field; k.field != "" {
		fields = append(fields, mappedField{path: k.field, slot: keyIDName},
			mappedField{path: "payload." + k.field, slot: payloadIDName})
	}
	if ends != "" {
		path, err := ParsePath(ends)
		if err != nil {
			return nil, err
		}
		name := path.lastField()
		fields = append(fields, mappedField{path: name, slot: keyEnds, many: true},
			mappedField{path: "payload." + name, slot: payloadEnds, many: true})
	}
	k.root, err = compile(fields)
	return k, err
}

// read scans a key. It reports whether the key is a JSON object, list or string. Other keys are plain
// text, also those that only begin like JSON ({6b29fc40-…}).
func (k *keyReader) read(key []byte, limit int) (isJSON bool) {
	k.scan.limit = limit
	k.scan.reset(key)
	switch key[0] {
	case '{', '[', '"':
		return k.scan.scan(k.root) == nil
	}
	return false
}

// found returns the id in the key that was read last, and the far ends.
func (k *keyReader) found() (id value, ends []value, ok bool) {
	last := func(s slot) bool {
		c := k.scan.captured[s]
		if len(c) == 0 {
			return false
		}
		id = c[len(c)-1]
		return true
	}
	if last(keySchema) && id.kind == kindObject && last(keyPayload) {
		if id.kind != kindObject { // the schema is that of a string or a number
			return id, nil, true
		}
		return id, k.scan.captured[payloadEnds], last(payloadID) || last(payloadIDName)
	}
	return id, k.scan.captured[keyEnds], last(keyID) || last(keyIDName)
}

// KeyID returns the id that a record has whose value has none.
func (d *Decoder) KeyID(key []byte) (string, *Fault) {
	name, missing := "id", MissingID
	if d.edges {
		name, missing = "src", MissingSrc
	}
	if json, fault := withoutHeader(key); fault == nil {
		key = json
	}
	switch {
	case len(key) == 0:
		return "", faultf(missing, "no %s in the value, and the record has no key", name)
	case key[0] == 0:
		return "", faultf(missing, "no %s in the value, and the key is in the wire format of a schema registry: "+
			"%s.format is json, or the registry does not know the key's schema, or the key does not fit it",
			name, d.topic())
	case !utf8.Valid(key):
		return "", faultf(BadUTF8, "the key is not valid UTF-8 at byte %d", firstInvalid(key))
	case !d.key.read(key, d.scan.limit):
		return checkID(string(key), "key")
	case key[0] != '{':
		return "", faultf(missing, "no %s in the value, and the key %s is JSON but no object; send the id itself, "+
			"without quotes, as the key", name, quote(string(key)))
	case d.orders.joins():
		return "", faultf(missing, "no %s in the value, and the key %s is an object; an id of several fields is read "+
			"from values alone (ingest.baskets.id)", name, quote(string(key)))
	}
	id, ends, ok := d.key.found()
	if !ok {
		return "", faultf(missing, "no %s in the value, and the key %s is an object without the field %q, in which "+
			"the path of ingest.%s ends; map a field that values and keys call by the same name, or send the id "+
			"itself as the key", name, quote(string(key)), d.key.field, d.fields[0].Name)
	}
	d.keyEnds = ends
	return d.idOf(id, "the key's "+name)
}

// topic is what the configuration calls the decoder's topic.
func (d *Decoder) topic() string {
	switch {
	case d.edges:
		return "ingest.edges"
	case d.orders != nil:
		return "ingest.baskets"
	}
	return "ingest.nodes"
}
