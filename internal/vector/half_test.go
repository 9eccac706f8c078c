package vector_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"giantstream/internal/vector"
)

// reference is the value of a binary16 number by its definition.
func reference(h uint16) float64 {
	exponent, fraction := int(h>>10&0x1F), float64(h&0x3FF)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 0x1F:
		if v = math.Inf(1); fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return v
}

func TestHalfOfEveryHalf(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		x, want := vector.FromHalf(h), reference(h)
		if math.IsNaN(want) {
			if x == x || vector.Half(x)&0x7C00 != 0x7C00 || vector.Half(x)&0x3FF == 0 {
				t.Errorf("%#04x is %g, want NaN", h, x)
			}
			continue
		}
		if float64(x) != want || math.Signbit(float64(x)) != math.Signbit(want) {
			t.Errorf("%#04x is %g, want %g", h, x, want)
		}
		if back := vector.Half(x); back != h {
			t.Errorf("%#04x came back as %#04x", h, back)
		}
	}
}

// Between each two neighbours: below the middle to the lower one, above to the higher one, the middle
// itself to the even one.
func TestHalfRoundsToNearestEven(t *testing.T) {
	for i := range 0x7BFF {
		low, high := uint16(i), uint16(i+1)
		middle := float32((reference(low) + reference(high)) / 2) // exact: one bit more than a half has
		even := low
		if low&1 == 1 {
			even = high
		}
		for _, sign := range []uint16{0, 0x8000} {
			s := float32(1)
			if sign != 0 {
				s = -1
			}
			for _, c := range []struct {
				x    float32
				want uint16
			}{{math.Nextafter32(middle, 0), low}, {middle, even}, {math.Nextafter32(middle, 1e9), high}} {
				if got := vector.Half(s * c.x); got != c.want|sign {
					t.Fatalf("%g became %#04x, want %#04x", s*c.x, got, c.want|sign)
				}
			}
		}
	}
	for x, want := range map[float32]uint16{65504: 0x7BFF, 65519.996: 0x7BFF, 65520: 0x7C00, 1e30: 0x7C00,
		0x1p-25: 0, 1e-30: 0} {
		if got := vector.Half(x); got != want {
			t.Errorf("%g became %#04x, want %#04x", x, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x := float32(r.NormFloat64() / 16)
		h := vector.Half(x)
		d := math.Abs(float64(x) - reference(h))
		if math.Abs(float64(x)-reference(h+1)) < d || h&0x7FFF > 0 && math.Abs(float64(x)-reference(h-1)) < d {
			t.Fatalf("%g became %#04x, a neighbour is nearer", x, h)
		}
	}
}
