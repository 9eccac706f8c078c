package artifact

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func sample(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, "GSTEST01", 3)
	w.U64(7)
	w.F64(0.5)
	w.Bytes([]byte("words"))
	w.Int32s([]int32{-1, 2})
	w.Uint64s([]uint64{1 << 40})
	w.Float32s(make([]float32, chunk)) // longer than one chunk
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(b []byte) error {
	r, err := NewReader(bytes.NewReader(b), "GSTEST01", 3)
	if err != nil {
		return err
	}
	seven := r.Int("seven", 1, 10)
	half := r.F64()
	words := r.Bytes("words", 100)
	ints := r.Int32s("ints", 100)
	longs := r.Uint64s("longs", 100)
	floats := r.Float32s("floats", 1<<20)
	if err := r.Close(); err != nil {
		return err
	}
	if seven != 7 || half != 0.5 || string(words) != "words" || !slices.Equal(ints, []int32{-1, 2}) ||
		longs[0] != 1<<40 || len(floats) != chunk {
		return errors.New("fields differ from what was written")
	}
	return nil
}

func TestRoundTrip(t *testing.T) {
	if err := read(sample(t)); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	good := sample(t)
	for _, tc := range []struct {
		name   string
		damage func([]byte) []byte
		want   error
	}{
		{"empty", func(b []byte) []byte { return nil }, ErrCorrupt},
		{"other kind", func(b []byte) []byte { b[0] = 'X'; return b }, ErrUnknown},
		{"newer version", func(b []byte) []byte { b[8] = 9; return b }, ErrUnknown},
		{"cut", func(b []byte) []byte { return b[:len(b)-5] }, ErrCorrupt},
		{"flipped bit", func(b []byte) []byte { b[100] ^= 1; return b }, ErrCorrupt},
		{"huge length", func(b []byte) []byte { b[33] = 0xff; return b }, ErrCorrupt},
		{"trailing bytes", func(b []byte) []byte { return append(b, 0) }, ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := read(tc.damage(bytes.Clone(good))); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}
