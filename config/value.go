package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Secret is a string that does not print. string(s) is its value.
type Secret string

const masked = "***"

// String returns *** for a secret that is set, "" for one that is not.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString keeps the value out of %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// Format keeps the value out of every other verb.
func (s Secret) Format(f fmt.State, verb rune) {
	out := s.String()
	if verb == 'q' || f.Flag('#') {
		out = s.GoString()
	}
	// The writer is fmt's own buffer, which does not fail.
	_, _ = f.Write([]byte(out))
}

// MarshalText keeps the value out of JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue keeps the value out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// List is a list of strings; a file may give a single one without brackets.
type List []string

// Size is a number of bytes, written as 512KiB, 64MiB or plain bytes.
type Size int64

// Binary multiples of a byte.
const (
	KiB Size = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

var units = []struct {
	suffix string
	size   Size
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// ParseSize reads a size such as 64MiB, 1.5GiB or 4096.
func ParseSize(text string) (Size, error) {
	number, unit := text, Size(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	bytes := n * float64(unit)
	switch {
	case err != nil || math.IsNaN(n) || n < 0:
		return 0, errors.New("must be a size such as 64MiB, 512KiB or 4096")
	case bytes > 1<<53:
		return 0, errors.New("is too large for a size")
	case bytes != math.Trunc(bytes):
		return 0, errors.New("must be a whole number of bytes")
	}
	return Size(bytes), nil
}

// String writes the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%u.size == 0 && u.size > 1 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes the size as a file would.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
