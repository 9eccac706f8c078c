package jsonvalue

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendString appends a JSON string. Bytes that are not UTF-8 are kept, so that the decoder finds
// them, where encoding/json would replace them.
func AppendString[T ~string | ~[]byte](b []byte, s T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // of what is not appended yet
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch {
		case c >= ' ':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// AppendBytes appends bytes without a type of their own: a string if they are UTF-8, since many
// writers do not mark their strings, else what AppendBinary appends.
func AppendBytes(b, v []byte) []byte {
	if utf8.Valid(v) {
		return AppendString(b, v)
	}
	return AppendBinary(b, v)
}

// AppendBinary appends an object, which no field can be mapped to.
func AppendBinary(b, v []byte) []byte {
	b = append(b, `{"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, `"}`...)
}

// AppendFloat appends a float that its format keeps with 16, 32 or 64 bits: the shortest digits that
// give it back (of 16 bits, as one of 32), null for NaN, and an object for infinities. From 2^53 on (of 32
// bits 2^24, of 16 bits 2^11) several integers are the same float, and it gets an exponent, so that
// none of them becomes an id.
func AppendFloat(b []byte, f float64, bits int) []byte {
	exact, digits := float64(1<<53), 64
	switch bits {
	case 32:
		exact, digits = 1<<24, 32
	case 16:
		exact, digits = 1<<11, 32
	}
	switch size := math.Abs(f); {
	case math.IsNaN(f):
		return append(b, "null"...)
	case math.IsInf(f, 1):
		return append(b, `{"float":"Infinity"}`...)
	case math.IsInf(f, -1):
		return append(b, `{"float":"-Infinity"}`...)
	case f == 0: // also -0
		return append(b, '0')
	case size < 1e-6 || size >= exact:
		return strconv.AppendFloat(b, f, 'e', -1, digits)
	}
	return strconv.AppendFloat(b, f, 'f', -1, digits)
}

const (
	// MaxScale bounds the digits of a decimal after its point, and the zeros that a negative scale adds
	// before it. Writers of Parquet and databases stop at 76.
	MaxScale = 1000
	// maxDecimalBytes bounds an unscaled decimal; 32 bytes have 76 digits.
	maxDecimalBytes = 128
)

// AppendDecimal appends unscaled · 10^-scale with all digits of its scale, which is from -MaxScale to
// MaxScale.
func AppendDecimal(b []byte, unscaled int64, scale int) []byte {
	if unscaled < 0 {
		b = append(b, '-')
	}
	size := uint64(unscaled)
	if unscaled < 0 {
		size = -size
	}
	var digits [20]byte
	return appendPoint(b, strconv.AppendUint(digits[:0], size, 10), scale)
}

// AppendLongDecimal is AppendDecimal of an unscaled number in two's complement, big-endian. One that
// is longer than any database writes is binary.
func AppendLongDecimal(b, unscaled []byte, scale int) []byte {
	if len(unscaled) > maxDecimalBytes || scale < -MaxScale || scale > MaxScale {
		return AppendBinary(b, unscaled)
	}
	if len(unscaled) <= 8 {
		var n int64
		if len(unscaled) > 0 {
			n = int64(int8(unscaled[0]))
			for _, c := range unscaled[1:] {
				n = n<<8 | int64(c)
			}
		}
		return AppendDecimal(b, n, scale)
	}
	n := new(big.Int).SetBytes(unscaled)
	if unscaled[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(unscaled))))
		b = append(b, '-')
		n.Neg(n)
	}
	return appendPoint(b, n.Append(nil, 10), scale)
}

// appendPoint appends digits with a point before the last scale ones, or with as many zeros as a negative scale says.
func appendPoint(b, digits []byte, scale int) []byte {
	if scale < 0 && string(digits) != "0" {
		return append(append(b, digits...), bytes.Repeat([]byte{'0'}, -scale)...)
	}
	whole := max(0, len(digits)-max(0, scale))
	if whole == 0 {
		b = append(b, '0')
	}
	b = append(b, digits[:whole]...)
	if scale <= 0 {
		return b
	}
	b = append(b, '.')
	for range scale - len(digits) {
		b = append(b, '0')
	}
	return append(b, digits[whole:]...)
}

// AppendTime appends a point in time as an RFC 3339 date-time in UTC, which needs no unit. Outside the
// years 0 to 9999 it appends a string that is none.
func AppendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// AppendDate appends a day, counted from 1970-01-01, as an RFC 3339 full-date.
func AppendDate(b []byte, days int32) []byte {
	b = append(b, '"')
	b = time.Unix(int64(days)*86400, 0).UTC().AppendFormat(b, time.DateOnly)
	return append(b, '"')
}

// AppendTimeOfDay appends a time since midnight, counted in parts of a second, as "15:04:05.999". It is
// a string, because a number could be taken for an event time.
func AppendTimeOfDay(b []byte, n, perSecond int64) []byte {
	b = append(b, '"')
	size := uint64(n)
	if n < 0 {
		b = append(b, '-')
		size = -size
	}
	seconds, part := size/uint64(perSecond), size%uint64(perSecond)
	b = fmt.Appendf(b, "%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if part > 0 {
		b = append(b, '.')
		b = fmt.Appendf(b, "%09d", part*uint64(time.Second)/uint64(perSecond))
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return append(b, '"')
}

// AppendLogical appends what an integer means by the logical type that its schema states: one of
// Avro's, or the name that Kafka Connect's converters keep, which is where Debezium has the unit of a
// time. ok is false, and nothing is appended, for all others.
// https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-temporal-types
func AppendLogical(b []byte, logical string, n int64) (out []byte, ok bool) {
	switch logical {
	case "date", "io.debezium.time.Date", "org.apache.kafka.connect.data.Date":
		if n != int64(int32(n)) {
			return b, false
		}
		return AppendDate(b, int32(n)), true
	case "timestamp-millis", "local-timestamp-millis", "io.debezium.time.Timestamp",
		"org.apache.kafka.connect.data.Timestamp":
		return AppendTime(b, time.UnixMilli(n)), true
	case "timestamp-micros", "local-timestamp-micros", "io.debezium.time.MicroTimestamp":
		return AppendTime(b, time.UnixMicro(n)), true
	case "timestamp-nanos", "local-timestamp-nanos", "io.debezium.time.NanoTimestamp":
		return AppendTime(b, time.Unix(0, n)), true
	case "time-millis", "io.debezium.time.Time", "org.apache.kafka.connect.data.Time":
		return AppendTimeOfDay(b, n, 1e3), true
	case "time-micros", "io.debezium.time.MicroTime":
		return AppendTimeOfDay(b, n, 1e6), true
	case "io.debezium.time.NanoTime":
		return AppendTimeOfDay(b, n, 1e9), true
	}
	return b, false
}

// AppendInterval appends a length of time of which no part is a fixed number of another.
func AppendInterval(b []byte, months, days, milliseconds uint32) []byte {
	return fmt.Appendf(b, `"P%dM%dDT%d.%03dS"`, months, days, milliseconds/1000, milliseconds%1000)
}

// AppendUUID appends the 16 bytes of a UUID in its text form.
func AppendUUID(b, v []byte) []byte {
	return fmt.Appendf(b, `"%x-%x-%x-%x-%x"`, v[:4], v[4:6], v[6:8], v[8:10], v[10:])
}
