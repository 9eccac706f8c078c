package schema

import (
	"errors"
	"strconv"

	"giantstream/ingest/jsonvalue"
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

func (w *writer) str(s string)              { w.buf = jsonvalue.AppendString(w.buf, s) }
func (w *writer) bytes(b []byte)            { w.buf = jsonvalue.AppendBytes(w.buf, b) }
func (w *writer) float(f float64, bits int) { w.buf = jsonvalue.AppendFloat(w.buf, f, bits) }
func (w *writer) bool(b bool)               { w.buf = strconv.AppendBool(w.buf, b) }
func (w *writer) int(n int64)               { w.buf = strconv.AppendInt(w.buf, n, 10) }
func (w *writer) uint(n uint64)             { w.buf = strconv.AppendUint(w.buf, n, 10) }
func (w *writer) null()                     { w.raw("null") }
