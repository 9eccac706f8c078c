package decode

import (
	"math/rand/v2"
	"testing"
)

// plain finds the byte that a loop over single bytes finds, wherever it is and whatever is around
// it.
func TestPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// Values beside those that count, and around the borrows of the arithmetic.
	values := []byte{0, 1, 0x1F, ' ', '!', '"', '#', '[', '\\', ']', 'a', 0x7F, 0x80, 0x81, 0xA0, 0xA2, 0xDC, 0xFF}
	for range 100_000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = 'a'
			if rng.IntN(8) == 0 {
				b[i] = values[rng.IntN(len(values))]
			}
		}
		want := len(b)
		for i, c := range b {
			if c == '"' || c == '\\' || c < ' ' {
				want = i
				break
			}
		}
		if got := plain(b); got != want {
			t.Fatalf("plain(%q) = %d, want %d", b, got, want)
		}
	}
}
