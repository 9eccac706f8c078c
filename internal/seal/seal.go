// Package seal gives a JSON document a checksum of its own bytes.
//
// A sealed document is a JSON object whose last member is
//
//	,
//	  "checksum": "crc32c:1a2b3c4d"
//	}
//
// with exactly these bytes and a newline at the end. The checksum is the CRC-32C (Castagnoli) of all bytes
// before the comma, in eight lower-case hexadecimal digits. So a document is sealed after it is encoded, and
// checked before it is parsed. A reader that knows nothing of seals sees a JSON object with one more member.
//
// Format page: docs/format/store.md, "Checksums".
package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrBroken: the document is not the one that was sealed.
var ErrBroken = errors.New("checksum of the document does not match")

const (
	head   = ",\n  \"checksum\": \"crc32c:"
	foot   = "\"\n}\n"
	digits = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// JSON encodes v, which must be a JSON object with at least one member, and seals it.
func JSON(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	body, ok := bytes.CutSuffix(data, []byte("\n}"))
	if !ok {
		return nil, fmt.Errorf("%T is no JSON object with members", v)
	}
	return fmt.Appendf(body, "%s%08x%s", head, crc32.Checksum(body, castagnoli), foot), nil
}

// Open checks the seal of a document and returns the document without it. It returns a document without a
// seal as it is, with sealed false: an older release wrote the document, or its last bytes are damaged. A
// caller that knows that the document must have a seal refuses it.
func Open(data []byte) (document []byte, sealed bool, err error) {
	rest, ok := bytes.CutSuffix(data, []byte(foot))
	if at := len(rest) - digits - len(head); ok && at >= 0 && bytes.HasPrefix(rest[at:], []byte(head)) {
		body, stated := rest[:at], rest[at+len(head):]
		if computed := fmt.Appendf(nil, "%08x", crc32.Checksum(body, castagnoli)); !bytes.Equal(stated, computed) {
			return nil, true, fmt.Errorf("%w: it says crc32c:%s, its bytes have %s", ErrBroken, stated, computed)
		}
		return append(bytes.Clone(body), "\n}\n"...), true, nil
	}
	return data, false, nil
}

// Decode checks the seal of a document that has one and decodes it into v. It refuses fields that v does not have.
func Decode(data []byte, v any) (sealed bool, err error) {
	body, sealed, err := Open(data)
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
