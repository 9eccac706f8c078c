// Package seal gives a JSON document a checksum of its own bytes, and says which document it is.
//
// A sealed document is a JSON object whose last members are
//
//	,
//	  "stored_as": "0b6f51aa93c2d701:shards/0/published.json",
//	  "checksum": "crc32c:1a2b3c4d"
//	}
//
// with exactly these bytes and a newline at the end. stored_as is the place of the document: the id of the pipeline,
// a colon and the object's key in the pipeline's store, or the key alone where the writer did not know the id. The
// checksum is the CRC-32C (Castagnoli) of all bytes before the last comma, in eight lower-case hexadecimal digits. So
// a document is sealed after it is encoded, and checked before it is parsed, and one that lies in another's place is
// refused. A reader that knows nothing of seals sees a JSON object with two more members.
//
// Documents of earlier releases have no stored_as, and are read without a check of their place.
//
// Format page: docs/format/store.md, "Checksums".
package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// ErrBroken: the document is not the one that was sealed in this place.
var ErrBroken = errors.New("document is not the one that was stored here")

const (
	head   = ",\n  \"checksum\": \"crc32c:"
	foot   = "\"\n}\n"
	digits = 8

	placeHead = ",\n  \"stored_as\": \""
	placeFoot = "\""
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Place says where a document is stored: the pipeline's id and the key in its store, "" where they are not known. Keys
// have no colon and no character that JSON escapes.
type Place struct{ Pipeline, Key string }

func (p Place) String() string {
	if p.Pipeline == "" {
		return p.Key
	}
	return p.Pipeline + ":" + p.Key
}

// parsePlace is the inverse of String.
func parsePlace(s string) Place {
	if pipeline, key, ok := strings.Cut(s, ":"); ok {
		return Place{pipeline, key}
	}
	return Place{Key: s}
}

// accepts reports whether a document that says where it is stored may lie in p. What either does not know is not
// compared.
func (p Place) accepts(said Place) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(p.Key, said.Key) && same(p.Pipeline, said.Pipeline)
}

// JSON encodes v, which must be a JSON object with at least one member, and seals it for its place.
func JSON(v any, at Place) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	body, ok := bytes.CutSuffix(data, []byte("\n}"))
	if !ok {
		return nil, fmt.Errorf("%T is no JSON object with members", v)
	}
	body = fmt.Append(body, placeHead, at, placeFoot)
	return fmt.Appendf(body, "%s%08x%s", head, crc32.Checksum(body, castagnoli), foot), nil
}

// Open checks the seal of a document that was read from a place, and returns the document without it. It returns a
// document without a seal as it is, with sealed false: an older release wrote the document, or its last bytes are
// damaged. A caller that knows that the document must have a seal refuses it.
func Open(data []byte, at Place) (document []byte, sealed bool, err error) {
	body, stated, sealed := cut(data)
	if !sealed {
		return data, false, nil
	}
	if computed := fmt.Appendf(nil, "%08x", crc32.Checksum(body, castagnoli)); !bytes.Equal(stated, computed) {
		return nil, true, fmt.Errorf("%w: its checksum is crc32c:%s, its bytes have %s", ErrBroken, stated, computed)
	}
	body, said, placed := cutPlace(body)
	if placed && !at.accepts(said) {
		return nil, true, fmt.Errorf("%w: it is %s, and lies in the place of %s", ErrBroken, said, at)
	}
	return append(bytes.Clone(body), "\n}\n"...), true, nil
}

// PlaceOf returns the place that a whole document says it is stored in; the zero value if it does not say.
func PlaceOf(data []byte) Place {
	body, stated, sealed := cut(data)
	if !sealed || !bytes.Equal(stated, fmt.Appendf(nil, "%08x", crc32.Checksum(body, castagnoli))) {
		return Place{}
	}
	_, said, _ := cutPlace(body)
	return said
}

// cut divides a sealed document into what is sealed and the checksum.
func cut(data []byte) (body, stated []byte, sealed bool) {
	rest, ok := bytes.CutSuffix(data, []byte(foot))
	at := len(rest) - digits - len(head)
	if !ok || at < 0 || !bytes.HasPrefix(rest[at:], []byte(head)) {
		return nil, nil, false
	}
	return rest[:at], rest[at+len(head):], true
}

// cutPlace divides what is sealed into the document's own members and its place.
func cutPlace(body []byte) (members []byte, said Place, placed bool) {
	// No string of JSON holds the line break that the head begins with.
	at := bytes.LastIndex(body, []byte(placeHead))
	place, ok := bytes.CutSuffix(body[max(0, at):], []byte(placeFoot))
	if at < 0 || !ok || bytes.ContainsAny(place[len(placeHead):], "\"\n") {
		return body, Place{}, false
	}
	return body[:at], parsePlace(string(place[len(placeHead):])), true
}

// Decode checks the seal of a document that has one and decodes it into v. It refuses fields that v does not have.
func Decode(data []byte, at Place, v any) (sealed bool, err error) {
	body, sealed, err := Open(data, at)
	if err == nil {
		err = DecodeStrict(body, v)
	}
	return sealed, err
}

// DecodeStrict decodes a document without a seal. It refuses fields that v does not have.
func DecodeStrict(document []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
