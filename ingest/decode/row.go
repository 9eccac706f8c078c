package decode

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// scanRow scans the object that the mapping's paths lead into.
func (d *Decoder) scanRow(b []byte) *Fault {
	b, fault := withoutHeader(b)
	if fault != nil {
		return fault
	}
	if !utf8.Valid(b) {
		return faultf(BadUTF8, "the value is not valid UTF-8 at byte %d", firstInvalid(b))
	}
	d.scan.reset(b)
	switch err := d.scan.scan(d.root); {
	case errors.Is(err, errSurrogate):
		return faultf(BadUTF8, "%v", err)
	case err != nil:
		return faultf(BadJSON, "%v", err)
	}
	if first := bytes.TrimLeft(b, " \n\r\t"); first[0] != '{' {
		return faultf(BadType, "the value is not a JSON object")
	}
	if fault := d.choose(); fault != nil {
		return fault
	}
	d.types.apply(d.scan.captured)
	return nil
}

// schemaHeader is how long what stands before JSON is where Confluent's serializer for JSON Schema writes it: a zero
// byte and the schema's id, of which JSON has no need.
// https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
const schemaHeader = 5

// withoutHeader returns a value, or a key, without such a header.
func withoutHeader(v []byte) ([]byte, *Fault) {
	switch {
	case len(v) == 0 || v[0] != 0:
		return v, nil
	case len(v) > schemaHeader && v[schemaHeader] == '{':
		return v[schemaHeader:], nil
	}
	return nil, faultf(BadEncoding, "the value is in the wire format of a schema registry, and no JSON: set "+
		"ingest.schema_registry.url and, unless it is a change event, format: avro or protobuf")
}

func firstInvalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}
