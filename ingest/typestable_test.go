package ingest_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// allTypes are the types that formats state. FLOAT16 and the writers of other programs are in
// TestTypesOfOtherWriters.
var allTypes = func() []typed {
	types := []typed{
		{name: "string", draw: drawText, node: parquet.String, parquet: textValue,
			avro: `"string"`, asAvro: func(c *cell) any { return c.text },
			proto: "string", asProto: func(c *cell) any { return c.text }},
		{name: "enum", draw: func(r *rand.Rand) cell { return cell{kind: aText, text: pick(r, "PEN", "true", "FALSE")} },
			node: parquet.Enum, parquet: textValue,
			avro:   `{"type":"enum","name":"E","symbols":["PEN","true","FALSE"]}`,
			asAvro: func(c *cell) any { return c.text }},
		{name: "bytes", draw: drawBytes, node: func() parquet.Node { return parquet.Leaf(parquet.ByteArrayType) },
			parquet: func(c *cell) parquet.Value { return parquet.ByteArrayValue(c.raw) },
			avro:    `"bytes"`, asAvro: func(c *cell) any { return c.raw },
			proto: "bytes", asProto: func(c *cell) any { return c.raw }},
		{name: "fixed", draw: func(r *rand.Rand) cell {
			c := drawBytes(r)
			c.raw = append(c.raw, "padding"...)[:4]
			return c
		}, node: func() parquet.Node { return parquet.Leaf(parquet.FixedLenByteArrayType(4)) },
			parquet: func(c *cell) parquet.Value { return parquet.FixedLenByteArrayValue(c.raw) },
			avro:    `{"type":"fixed","name":"F","size":4}`, asAvro: func(c *cell) any { return c.raw }},
		{name: "bson", draw: func(r *rand.Rand) cell {
			c := drawBytes(r)
			c.opaque = true
			return c
		}, node: parquet.BSON, parquet: func(c *cell) parquet.Value { return parquet.ByteArrayValue(c.raw) }},
		{name: "uuid", draw: drawUUID, node: parquet.UUID,
			parquet: func(c *cell) parquet.Value { return parquet.FixedLenByteArrayValue(c.raw) },
			avro:    `{"type":"string","logicalType":"uuid"}`, asAvro: func(c *cell) any { return c.text }},
		{name: "bool", draw: func(r *rand.Rand) cell { return cell{kind: aBool, b: r.IntN(2) == 0} },
			node:    func() parquet.Node { return parquet.Leaf(parquet.BooleanType) },
			parquet: func(c *cell) parquet.Value { return parquet.BooleanValue(c.b) },
			avro:    `"boolean"`, asAvro: func(c *cell) any { return c.b },
			proto: "bool", asProto: func(c *cell) any { return c.b }},
		{name: "float", draw: drawFloat(32), node: func() parquet.Node { return parquet.Leaf(parquet.FloatType) },
			parquet: func(c *cell) parquet.Value { return parquet.FloatValue(float32(c.f)) },
			avro:    `"float"`, asAvro: func(c *cell) any { return float32(c.f) },
			proto: "float", asProto: func(c *cell) any { return float32(c.f) }},
		{name: "double", draw: drawFloat(64), node: func() parquet.Node { return parquet.Leaf(parquet.DoubleType) },
			parquet: func(c *cell) parquet.Value { return parquet.DoubleValue(c.f) },
			avro:    `"double"`, asAvro: func(c *cell) any { return c.f },
			proto: "double", asProto: func(c *cell) any { return c.f }},
		{name: "date", draw: drawDay, node: parquet.Date,
			parquet: func(c *cell) parquet.Value { return parquet.Int32Value(int32(c.n.Int64())) },
			avro:    `{"type":"int","logicalType":"date"}`, asAvro: func(c *cell) any { return int32(c.n.Int64()) }},
		{name: "date_debezium", draw: drawDay, avro: `{"type":"int","connect.name":"io.debezium.time.Date"}`,
			asAvro: func(c *cell) any { return int32(c.n.Int64()) }},
		{name: "timestamp_int96", draw: drawTimestamp(1e9),
			node:    func() parquet.Node { return parquet.Leaf(parquet.Int96Type) },
			parquet: func(c *cell) parquet.Value { return parquet.Int96Value(int96(c.t)) }},
		{name: "timestamp_proto", draw: drawTimestamp(1e9), proto: "google.protobuf.Timestamp",
			asProto: func(c *cell) any { return timestamppb.New(c.t) }},
	}
	types = append(types, integerTypes()...)
	types = append(types, decimalTypes()...)
	return append(types, timeTypes()...)
}()

func textValue(c *cell) parquet.Value { return parquet.ByteArrayValue([]byte(c.text)) }

func integerTypes() (types []typed) {
	integer := func(name string, bits int, signed bool) typed {
		return typed{name: name, draw: drawInteger(bits, signed), node: func() parquet.Node {
			if signed {
				return parquet.Int(bits)
			}
			return parquet.Uint(bits)
		}, parquet: func(c *cell) parquet.Value {
			if bits == 64 {
				return parquet.Int64Value(int64(bits64(c.n)))
			}
			return parquet.Int32Value(int32(bits64(c.n)))
		}}
	}
	for _, bits := range []int{8, 16, 32, 64} {
		types = append(types, integer(fmt.Sprint("int", bits), bits, true), integer(fmt.Sprint("uint", bits), bits, false))
	}
	for i := range types {
		t := &types[i]
		switch t.name {
		case "int32":
			t.avro, t.asAvro = `"int"`, func(c *cell) any { return int32(c.n.Int64()) }
			t.proto, t.asProto = "sint32", t.asAvro
		case "int64":
			t.avro, t.asAvro = `"long"`, func(c *cell) any { return c.n.Int64() }
			t.proto, t.asProto = "int64", t.asAvro
		case "uint32":
			t.proto, t.asProto = "fixed32", func(c *cell) any { return uint32(c.n.Uint64()) }
		case "uint64":
			t.proto, t.asProto = "uint64", func(c *cell) any { return c.n.Uint64() }
		}
	}
	plain := integer("int64_plain", 64, true)
	plain.node = func() parquet.Node { return parquet.Leaf(parquet.Int64Type) }
	return append(types, plain)
}

func bits64(n *big.Int) uint64 {
	if n.IsInt64() {
		return uint64(n.Int64())
	}
	return n.Uint64()
}

func decimalTypes() (types []typed) {
	for _, d := range []struct{ precision, scale int }{{9, 0}, {9, 2}, {18, 0}, {18, 6}, {38, 0}, {38, 9}, {76, 30}} {
		draw := drawDecimal(d.precision, d.scale)
		size := (d.precision*10/3+2)/8 + 1
		fixed := func(c *cell) []byte { return twosComplement(c.n, size) }
		schema := fmt.Sprintf(`"logicalType":"decimal","precision":%d,"scale":%d}`, d.precision, d.scale)
		name := fmt.Sprintf("decimal_%d_%d", d.precision, d.scale)
		types = append(types,
			typed{name: name + "_bytes", draw: draw,
				node:    func() parquet.Node { return parquet.Decimal(d.scale, d.precision, parquet.ByteArrayType) },
				parquet: func(c *cell) parquet.Value { return parquet.ByteArrayValue(twosComplement(c.n, 0)) },
				avro:    `{"type":"bytes",` + schema, asAvro: decimalRat},
			typed{name: name + "_fixed", draw: draw,
				node: func() parquet.Node {
					return parquet.Decimal(d.scale, d.precision, parquet.FixedLenByteArrayType(size))
				},
				parquet: func(c *cell) parquet.Value { return parquet.FixedLenByteArrayValue(fixed(c)) },
				avro:    fmt.Sprintf(`{"type":"fixed","name":"D%s","size":%d,`, name, size) + schema, asAvro: decimalRat})
		if d.precision <= 9 {
			types = append(types, typed{name: name + "_int32", draw: draw,
				node:    func() parquet.Node { return parquet.Decimal(d.scale, d.precision, parquet.Int32Type) },
				parquet: func(c *cell) parquet.Value { return parquet.Int32Value(int32(c.n.Int64())) }})
		}
		if d.precision == 18 {
			types = append(types, typed{name: name + "_int64", draw: draw,
				node:    func() parquet.Node { return parquet.Decimal(d.scale, d.precision, parquet.Int64Type) },
				parquet: func(c *cell) parquet.Value { return parquet.Int64Value(c.n.Int64()) }})
		}
	}
	return types
}

func decimalRat(c *cell) any { return new(big.Rat).SetFrac(c.n, pow10(c.s)) }

func timeTypes() (types []typed) {
	for _, u := range []struct {
		name, avro, debezium string
		unit                 parquet.TimeUnit
		perSecond            int64
	}{
		{"ms", "millis", "", parquet.Millisecond, 1e3},
		{"us", "micros", "Micro", parquet.Microsecond, 1e6},
		{"ns", "nanos", "Nano", parquet.Nanosecond, 1e9},
	} {
		count := func(c *cell) int64 { return c.t.Unix()*u.perSecond + int64(c.t.Nanosecond())/(1e9/u.perSecond) }
		asLong := func(c *cell) any { return count(c) }
		value := func(c *cell) parquet.Value { return parquet.Int64Value(count(c)) }
		ofDay := func(c *cell) int64 { return int64(c.d) / (1e9 / u.perSecond) }
		long := func(logical string) string { return fmt.Sprintf(`{"type":"long","logicalType":%q}`, logical) }
		clock := typed{name: "time_" + u.name, draw: drawTimeOfDay(u.perSecond),
			node: func() parquet.Node { return parquet.Time(u.unit) },
			parquet: func(c *cell) parquet.Value {
				if u.perSecond == 1e3 {
					return parquet.Int32Value(int32(ofDay(c)))
				}
				return parquet.Int64Value(ofDay(c))
			}}
		switch u.name {
		case "ms":
			clock.avro, clock.asAvro = `{"type":"int","logicalType":"time-millis"}`, func(c *cell) any { return int32(ofDay(c)) }
		case "us":
			clock.avro, clock.asAvro = long("time-micros"), func(c *cell) any { return ofDay(c) }
		}
		types = append(types, clock,
			typed{name: "timestamp_" + u.name, draw: drawTimestamp(u.perSecond),
				node: func() parquet.Node { return parquet.Timestamp(u.unit) }, parquet: value,
				avro: long("timestamp-" + u.avro), asAvro: asLong},
			typed{name: "local_timestamp_" + u.name, draw: drawTimestamp(u.perSecond),
				node: func() parquet.Node { return parquet.TimestampAdjusted(u.unit, false) }, parquet: value,
				avro: long("local-timestamp-" + u.avro), asAvro: asLong},
			typed{name: "debezium_timestamp_" + u.name, draw: drawTimestamp(u.perSecond),
				avro:   fmt.Sprintf(`{"type":"long","connect.name":"io.debezium.time.%sTimestamp"}`, u.debezium),
				asAvro: asLong},
			typed{name: "debezium_time_" + u.name, draw: drawTimeOfDay(u.perSecond),
				avro:   fmt.Sprintf(`{"type":"long","connect.name":"io.debezium.time.%sTime"}`, u.debezium),
				asAvro: func(c *cell) any { return ofDay(c) }})
	}
	return types
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drawText(r *rand.Rand) cell {
	if r.IntN(3) == 0 {
		return cell{kind: aText, text: pick(r, "", "a", "1.0", "1e6", "2020-02-29", "2020-02-30", "0000-01-01",
			"2020-02-29T12:00:00Z", "1969-12-31T23:59:59.999999999+01:00", "true", "False", "12:00:00", `{"a":1}`, "NaN", "null",
			"[1]", "-0", "01", "1700000000", "20200229", "20200230")}
	}
	text := ""
	for range r.IntN(12) {
		text += pick(r, "a", "B", "7", " ", ".", "-", "\"", "\\", "'", ",", ";", "\n", "\t", "\r", "\x00", "\x1f", "é",
			"漢", "😀", "{", "]", "<", "&", "\u2028", "\u007f")
	}
	return cell{kind: aText, text: text}
}

func drawBytes(r *rand.Rand) cell {
	raw := []byte{}
	for range r.IntN(8) {
		raw = append(raw, byte(pick(r, r.IntN(256), 'a'+r.IntN(26))))
	}
	return cell{kind: aBinary, raw: raw}
}

func drawUUID(r *rand.Rand) cell {
	raw := make([]byte, 16)
	for i := range raw {
		raw[i] = byte(r.IntN(256))
	}
	return cell{kind: aText, raw: raw,
		text: fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])}
}

func drawInteger(bits int, signed bool) func(*rand.Rand) cell {
	least, most := new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1))
	if signed {
		half := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		least, most = new(big.Int).Neg(half), new(big.Int).Sub(half, big.NewInt(1))
	}
	return func(r *rand.Rand) cell {
		n := new(big.Int)
		switch r.IntN(4) {
		case 0:
			n.Add(pick(r, least, most, n), big.NewInt(int64(r.IntN(3)-1)))
		case 1: // as of a clock
			n.SetInt64(pick(r, int64(1_580_699_106), 94_000_000_000, 1_580_699_106_500, 1_580_699_106_500_001,
				1_580_699_106_500_001_999, -1_580_699_106_500_001_999, 1_012_351, -5) + int64(r.IntN(1000)))
		default:
			n.SetUint64(r.Uint64() >> r.IntN(64))
			if signed && r.IntN(2) == 0 {
				n.Neg(n)
			}
		}
		if n.Cmp(least) < 0 {
			n.Set(least)
		}
		if n.Cmp(most) > 0 {
			n.Set(most)
		}
		return cell{kind: anInteger, n: n}
	}
}

func drawDecimal(precision, scale int) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell {
		n := new(big.Int)
		for range 1 + r.IntN(precision) {
			n.Mul(n, big.NewInt(10)).Add(n, big.NewInt(int64(pick(r, 0, r.IntN(10)))))
		}
		if r.IntN(2) == 0 { // whole
			n.Quo(n, pow10(scale)).Mul(n, pow10(scale))
		}
		if r.IntN(3) == 0 {
			n.Neg(n)
		}
		return cell{kind: aDecimal, n: n, s: scale}
	}
}

// twosComplement returns a number big-endian, in size bytes or, for 0, as few as it needs.
func twosComplement(n *big.Int, size int) []byte {
	if size == 0 {
		size = n.BitLen()/8 + 1
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return n.FillBytes(make([]byte, size))
}

func drawFloat(bits int) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell {
		var f float64
		switch r.IntN(4) {
		case 0:
			f = pick(r, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e-7, 1e-6, 1e300, 1<<24-1, 1<<24, 1<<24+2,
				1<<53-1, 1<<53, 1<<53+2, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64)
		case 1:
			f = float64(1_000_000 + r.IntN(1_000_000))
		case 2:
			f = math.Trunc(r.NormFloat64() * math.Pow(10, float64(r.IntN(20))))
		default:
			f = r.NormFloat64() * math.Pow(10, float64(r.IntN(30)-15))
		}
		if bits == 32 {
			f = float64(float32(f))
		}
		return cell{kind: aFloat, f: f, bits: bits}
	}
}

func drawDay(r *rand.Rand) cell {
	n := pick(r, int64(r.IntN(40_000)-10_000), int64(r.IntN(3_600_000)-719_162), 18263, -1, 0, 2_932_896)
	return cell{kind: aDay, n: big.NewInt(n)}
}

// drawTimestamp draws times of a unit that the unit can count.
func drawTimestamp(perSecond int64) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell {
		seconds := pick(r, 0, -1, 1, 86_400*365, 94_694_399, 1_580_699_106, -2_208_988_800,
			int64(r.IntN(6_000_000_000))-3_000_000_000)
		if perSecond < 1e9 && r.IntN(3) == 0 {
			seconds = pick(r, -62_135_596_800, -62_135_596_801, 253_402_300_799, 253_402_300_800,
				int64(r.IntN(300_000_000_000))-62_000_000_000)
		}
		nanos := pick(r, 0, 1, 999_999_999, int64(r.IntN(1e9)))
		return cell{kind: aTimestamp, t: time.Unix(seconds, nanos-nanos%(1e9/perSecond)).UTC()}
	}
}

func drawTimeOfDay(perSecond int64) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell {
		n := int64(pick(r, 0, 12*3600*1e9, 24*3600*1e9-1, r.IntN(24*3600*1e9)))
		return cell{kind: aTimeOfDay, d: time.Duration(n - n%(1e9/perSecond))}
	}
}
