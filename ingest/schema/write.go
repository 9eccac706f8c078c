package schema

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

var errTooLarge = errors.New("too large as JSON")

// writer appends JSON. Every field and element checks the bound.
type writer struct {
	buf []byte
	max int
}

func (w *writer) raw(s string) { w.buf = append(w.buf, s...) }

// separate begins the i-th field or element of an object or list.
func (w *writer) separate(i int) error {
	if len(w.buf) > w.max {
		return errTooLarge
	}
	if i > 0 {
		w.buf = append(w.buf, ',')
	}
	return nil
}

// field begins the i-th field of an object.
func (w *writer) field(i int, name string) error {
	err := w.separate(i)
	w.str(name)
	w.buf = append(w.buf, ':')
	return err
}

// str writes a string. Bytes that are not UTF-8 pass unchanged: the decoder has a code for them.
func (w *writer) str(s string) {
	const hex = "0123456789abcdef"
	w.buf = append(w.buf, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.buf = append(w.buf, '\\', c)
		case c < ' ':
			w.buf = append(w.buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			w.buf = append(w.buf, c)
		}
	}
	w.buf = append(w.buf, '"')
}

// bytes writes a string if the bytes are UTF-8, and otherwise an object, which the mapping refuses
// as an id or as text but accepts elsewhere.
func (w *writer) bytes(b []byte) {
	if utf8.Valid(b) {
		w.str(string(b))
		return
	}
	w.raw(`{"base64":"`)
	w.buf = base64.StdEncoding.AppendEncode(w.buf, b)
	w.raw(`"}`)
}

func (w *writer) bool(b bool)     { w.buf = strconv.AppendBool(w.buf, b) }
func (w *writer) int(n int64)     { w.buf = strconv.AppendInt(w.buf, n, 10) }
func (w *writer) uint(n uint64)   { w.buf = strconv.AppendUint(w.buf, n, 10) }
func (w *writer) null()           { w.raw("null") }
func (w *writer) number(s string) { w.raw(s) }

// float writes a number, and null for what JSON cannot express. Numbers of usual size have no
// exponent, so that whole ones can be ids.
func (w *writer) float(f float64, bits int) {
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		w.null()
	case size != 0 && (size < 1e-6 || size >= 1e21):
		w.buf = strconv.AppendFloat(w.buf, f, 'e', -1, bits)
	default:
		w.buf = strconv.AppendFloat(w.buf, f, 'f', -1, bits)
	}
}

// time writes an RFC 3339 date-time, which needs no unit.
func (w *writer) time(t time.Time) {
	w.buf = append(w.buf, '"')
	w.buf = t.UTC().AppendFormat(w.buf, time.RFC3339Nano)
	w.buf = append(w.buf, '"')
}
