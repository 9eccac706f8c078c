package backfill

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"giantstream/ingest/jsonvalue"
	"giantstream/sink/parquetio"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// parquetAppender appends a value of a leaf column as JSON. The value has the column's kind.
type parquetAppender func(b []byte, v *parquet.Value) []byte

// parquetMeaning is what a column's logical type says that its values are. A column without a logical type
// says nothing.
type parquetMeaning string

const (
	saysNothing   parquetMeaning = ""
	saysNull      parquetMeaning = "NULL"
	saysText      parquetMeaning = "a string"
	saysJSON      parquetMeaning = "JSON"
	saysBinary    parquetMeaning = "binary"
	saysUUID      parquetMeaning = "UUID"
	saysFloat16   parquetMeaning = "FLOAT16"
	saysInterval  parquetMeaning = "INTERVAL"
	saysDecimal   parquetMeaning = "DECIMAL"
	saysSigned    parquetMeaning = "a signed integer"
	saysUnsigned  parquetMeaning = "an unsigned integer"
	saysDate      parquetMeaning = "DATE"
	saysTime      parquetMeaning = "TIME of "
	saysTimestamp parquetMeaning = "TIMESTAMP of "

	millis, micros, nanos = "milliseconds", "microseconds", "nanoseconds"
)

// parquetType is what the values of a column are, and how Parquet keeps them.
type parquetType struct {
	parquetMeaning
	kind parquet.Kind
}

// parquetTypes says how values become JSON, but those of decimals, which need their scale.
// docs/format/input.md has the table for users.
var parquetTypes = map[parquetType]parquetAppender{
	{saysNothing, parquet.Boolean}: func(b []byte, v *parquet.Value) []byte {
		return strconv.AppendBool(b, v.Boolean())
	},
	{saysNothing, parquet.Int32}: appendParquetInt32,
	{saysNothing, parquet.Int64}: appendParquetInt64,
	{saysNothing, parquet.Int96}: appendParquetInt96,
	{saysNothing, parquet.Float}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendFloat(b, float64(v.Float()), 32)
	},
	{saysNothing, parquet.Double}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendFloat(b, v.Double(), 64)
	},
	{saysNothing, parquet.ByteArray}:         appendParquetBytes,
	{saysNothing, parquet.FixedLenByteArray}: appendParquetBytes,

	{saysText, parquet.ByteArray}:             appendParquetText,
	{saysText, parquet.FixedLenByteArray}:     appendParquetText,
	{saysJSON, parquet.ByteArray}:             appendParquetJSON,
	{saysBinary, parquet.ByteArray}:           appendParquetBinary,
	{saysBinary, parquet.FixedLenByteArray}:   appendParquetBinary,
	{saysUUID, parquet.FixedLenByteArray}:     appendParquetUUID,
	{saysFloat16, parquet.FixedLenByteArray}:  appendParquetFloat16,
	{saysInterval, parquet.FixedLenByteArray}: appendParquetInterval,

	{saysSigned, parquet.Int32}: appendParquetInt32,
	{saysSigned, parquet.Int64}: appendParquetInt64,
	{saysUnsigned, parquet.Int32}: func(b []byte, v *parquet.Value) []byte {
		return strconv.AppendUint(b, uint64(v.Uint32()), 10)
	},
	{saysUnsigned, parquet.Int64}: func(b []byte, v *parquet.Value) []byte {
		return strconv.AppendUint(b, v.Uint64(), 10)
	},

	{saysDate, parquet.Int32}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendDate(b, v.Int32())
	},
	{saysTime + millis, parquet.Int32}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendTimeOfDay(b, int64(v.Int32()), 1e3)
	},
	{saysTime + micros, parquet.Int64}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendTimeOfDay(b, v.Int64(), 1e6)
	},
	{saysTime + nanos, parquet.Int64}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendTimeOfDay(b, v.Int64(), 1e9)
	},
	{saysTimestamp + millis, parquet.Int64}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendTime(b, time.UnixMilli(v.Int64()))
	},
	{saysTimestamp + micros, parquet.Int64}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendTime(b, time.UnixMicro(v.Int64()))
	},
	{saysTimestamp + nanos, parquet.Int64}: func(b []byte, v *parquet.Value) []byte {
		return jsonvalue.AppendTime(b, time.Unix(0, v.Int64()))
	},
}

// parquetSizes are the bytes of the types that have a size.
var parquetSizes = map[parquetMeaning]int32{saysUUID: 16, saysFloat16: 2, saysInterval: 12}

// parquetAppenderOf returns how the values of a column become JSON; kind is how Parquet keeps them.
func parquetAppenderOf(e *pqformat.SchemaElement, kind parquet.Kind) (parquetAppender, error) {
	meaning, scale := parquetLogicalType(e.LogicalType.Value)
	if meaning == saysNothing && e.ConvertedType.Valid {
		meaning, scale = parquetConvertedTypes[e.ConvertedType.V], e.Scale.V
	}
	size, sized := parquetSizes[meaning]
	appender, known := parquetTypes[parquetType{meaning, kind}]
	switch {
	case meaning == saysNull:
		return func(b []byte, _ *parquet.Value) []byte { return append(b, "null"...) }, nil
	case meaning == saysDecimal:
		return parquetDecimalAppender(int(scale), kind)
	case !known || sized && e.TypeLength.V != size:
		return nil, fmt.Errorf("%w: %s kept as %s of %d bytes, which the format has no meaning for",
			parquetio.ErrSchema, meaning, kind, e.TypeLength.V)
	}
	return appender, nil
}

// parquetLogicalType returns what a logical type says, and the scale of a decimal.
func parquetLogicalType(logical pqformat.LogicalTypeValue) (meaning parquetMeaning, scale int32) {
	switch t := logical.(type) {
	case *pqformat.NullType:
		return saysNull, 0
	case *pqformat.StringType, *pqformat.EnumType:
		return saysText, 0
	case *pqformat.JsonType:
		return saysJSON, 0
	case *pqformat.BsonType, *pqformat.GeometryType, *pqformat.GeographyType:
		return saysBinary, 0
	case *pqformat.UUIDType:
		return saysUUID, 0
	case *pqformat.Float16Type:
		return saysFloat16, 0
	case *pqformat.DecimalType:
		return saysDecimal, t.Scale
	case *pqformat.IntType:
		if t.IsSigned {
			return saysSigned, 0
		}
		return saysUnsigned, 0
	case *pqformat.DateType:
		return saysDate, 0
	case *pqformat.TimeType:
		return saysTime + parquetUnit(t.Unit), 0
	case *pqformat.TimestampType:
		return saysTimestamp + parquetUnit(t.Unit), 0
	}
	return saysNothing, 0
}

func parquetUnit(unit pqformat.TimeUnit) parquetMeaning {
	switch unit.Value.(type) {
	case *pqformat.MilliSeconds:
		return millis
	case *pqformat.MicroSeconds:
		return micros
	case *pqformat.NanoSeconds:
		return nanos
	}
	return "an unknown unit"
}

// parquetConvertedTypes are the older form of logical types, which many writers still write alone.
var parquetConvertedTypes = map[deprecated.ConvertedType]parquetMeaning{
	deprecated.UTF8: saysText, deprecated.Enum: saysText, deprecated.Json: saysJSON, deprecated.Bson: saysBinary,
	deprecated.Interval: saysInterval, deprecated.Decimal: saysDecimal, deprecated.Date: saysDate,
	deprecated.TimeMillis: saysTime + millis, deprecated.TimeMicros: saysTime + micros,
	deprecated.TimestampMillis: saysTimestamp + millis, deprecated.TimestampMicros: saysTimestamp + micros,
	deprecated.Uint8: saysUnsigned, deprecated.Uint16: saysUnsigned, deprecated.Uint32: saysUnsigned,
	deprecated.Uint64: saysUnsigned, deprecated.Int8: saysSigned, deprecated.Int16: saysSigned,
	deprecated.Int32: saysSigned, deprecated.Int64: saysSigned,
}

func parquetDecimalAppender(scale int, kind parquet.Kind) (parquetAppender, error) {
	if scale < 0 || scale > jsonvalue.MaxScale {
		return nil, fmt.Errorf("%w: a decimal of scale %d; the limit is %d", parquetio.ErrSchema, scale,
			jsonvalue.MaxScale)
	}
	switch kind {
	case parquet.Int32:
		return func(b []byte, v *parquet.Value) []byte {
			return jsonvalue.AppendDecimal(b, int64(v.Int32()), scale)
		}, nil
	case parquet.Int64:
		return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendDecimal(b, v.Int64(), scale) }, nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(b []byte, v *parquet.Value) []byte {
			return jsonvalue.AppendLongDecimal(b, v.ByteArray(), scale)
		}, nil
	}
	return nil, fmt.Errorf("%w: a decimal kept as %s", parquetio.ErrSchema, kind)
}

func appendParquetInt32(b []byte, v *parquet.Value) []byte {
	return strconv.AppendInt(b, int64(v.Int32()), 10)
}

func appendParquetInt64(b []byte, v *parquet.Value) []byte {
	return strconv.AppendInt(b, v.Int64(), 10)
}

func appendParquetText(b []byte, v *parquet.Value) []byte {
	return jsonvalue.AppendString(b, v.ByteArray())
}

func appendParquetBytes(b []byte, v *parquet.Value) []byte {
	return jsonvalue.AppendBytes(b, v.ByteArray())
}

func appendParquetBinary(b []byte, v *parquet.Value) []byte {
	return jsonvalue.AppendBinary(b, v.ByteArray())
}

func appendParquetUUID(b []byte, v *parquet.Value) []byte {
	return jsonvalue.AppendUUID(b, v.ByteArray())
}

// appendParquetJSON appends a JSON text as the value that it is, so that paths lead into it. Text that
// is no JSON is a string.
func appendParquetJSON(b []byte, v *parquet.Value) []byte {
	if text := v.ByteArray(); json.Valid(text) {
		return append(b, text...)
	}
	return jsonvalue.AppendString(b, v.ByteArray())
}

// appendParquetInt96 appends a timestamp as Impala and earlier versions of Spark write it: 8 bytes of
// nanoseconds of a day, 4 bytes of the Julian day.
func appendParquetInt96(b []byte, v *parquet.Value) []byte {
	const julian1970 = 2440588
	t := v.Int96()
	nanos := int64(uint64(t[1])<<32 | uint64(t[0]))
	return jsonvalue.AppendTime(b, time.Unix((int64(t[2])-julian1970)*86400, nanos))
}

func appendParquetInterval(b []byte, v *parquet.Value) []byte {
	part := v.ByteArray()
	return jsonvalue.AppendInterval(b, binary.LittleEndian.Uint32(part), binary.LittleEndian.Uint32(part[4:]),
		binary.LittleEndian.Uint32(part[8:]))
}

// appendParquetFloat16 appends an IEEE 754 binary16: a sign, 5 bits of exponent, 10 of mantissa.
func appendParquetFloat16(b []byte, v *parquet.Value) []byte {
	bits := binary.LittleEndian.Uint16(v.ByteArray())
	exponent, mantissa := int(bits>>10&31), float64(bits&1023)
	var f float64
	switch {
	case exponent == 0:
		f = math.Ldexp(mantissa, -24)
	case exponent < 31:
		f = math.Ldexp(1024+mantissa, exponent-25)
	case mantissa == 0:
		f = math.Inf(1)
	default:
		f = math.NaN()
	}
	if bits>>15 == 1 {
		f = -f
	}
	return jsonvalue.AppendFloat(b, f, 16)
}
