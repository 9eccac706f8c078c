package forget

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"giantstream/sink"
)

// maxDocument bounds a JSON document that is read whole. A larger one is searched as bytes.
const maxDocument = 64 << 20

// document searches an object that is JSON. kind is "" if it is none.
func (s *Scanner) document(o sink.Object, head []byte) (kind string, err error) {
	if first := bytes.TrimLeft(head, " \t\r\n"); len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return "", nil
	}
	if o.Size() > maxDocument {
		return "", nil
	}
	data := make([]byte, o.Size())
	if _, err := o.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if !s.json(data, "JSON") {
		return "", nil
	}
	return "JSON", nil
}

// json searches the names and the strings of a JSON text, and reports whether it is one.
func (s *Scanner) json(data []byte, where string) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return false
	}
	s.walk(v, where)
	return true
}

func (s *Scanner) walk(v any, where string) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			s.found([]byte(name), apart, where)
			s.walk(value, where)
		}
	case []any:
		for _, value := range v {
			s.walk(value, where)
		}
	case json.Number:
		s.found([]byte(v), whole, where)
	case string:
		s.found([]byte(v), apart, where)
		// Bytes of other records are kept so.
		if decoded, err := base64.StdEncoding.DecodeString(v); err == nil && len(decoded) > 0 {
			if !json.Valid(decoded) || !s.json(decoded, where) {
				s.found(decoded, apart, where)
			}
		}
	}
}

const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

func isCompressed(head []byte) bool {
	return bytes.HasPrefix(head, []byte(gzipMagic)) || bytes.HasPrefix(head, []byte(zstdMagic))
}

// compressed searches what a gzip or Zstandard stream holds, and reports whether the bytes are one to their end.
func (s *Scanner) compressed(r io.Reader, head []byte) bool {
	if bytes.HasPrefix(head, []byte(gzipMagic)) {
		z, err := gzip.NewReader(r)
		return err == nil && s.bytesOf(z, apart, "compressed bytes") == nil
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return false
	}
	defer z.Close()
	return s.bytesOf(z, apart, "compressed bytes") == nil
}
