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

// parquetAppenderOf returns how the values of a column become JSON. It follows the logical type; the
// kind is how Parquet keeps the values. docs/format/input.md has the table.
func parquetAppenderOf(e *pqformat.SchemaElement, kind parquet.Kind) (parquetAppender, error) {
	is32, is64 := kind == parquet.Int32, kind == parquet.Int64
	isBytes := kind == parquet.ByteArray || kind == parquet.FixedLenByteArray
	size := int(e.TypeLength.V)
	isFixed := func(n int) bool { return kind == parquet.FixedLenByteArray && size == n }
	logical := parquetLogicalType(e)
	switch t := logical.(type) {
	case nil:
		if e.ConvertedType.Valid && e.ConvertedType.V == deprecated.Interval && isFixed(12) {
			return appendParquetInterval, nil
		}
		return plainParquetAppender(kind)
	case *pqformat.NullType:
		return func(b []byte, _ *parquet.Value) []byte { return append(b, "null"...) }, nil
	case *pqformat.StringType, *pqformat.EnumType:
		if isBytes {
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendString(b, v.ByteArray()) }, nil
		}
	case *pqformat.JsonType:
		if isBytes {
			return appendParquetJSON, nil
		}
	case *pqformat.BsonType, *pqformat.GeometryType, *pqformat.GeographyType:
		if isBytes {
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendBinary(b, v.ByteArray()) }, nil
		}
	case *pqformat.UUIDType:
		if isFixed(16) {
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendUUID(b, v.ByteArray()) }, nil
		}
	case *pqformat.Float16Type:
		if isFixed(2) {
			return appendParquetFloat16, nil
		}
	case *pqformat.DecimalType:
		return parquetDecimalAppender(int(t.Scale), kind)
	case *pqformat.IntType:
		switch {
		case is32 && t.IsSigned:
			return func(b []byte, v *parquet.Value) []byte { return strconv.AppendInt(b, int64(v.Int32()), 10) }, nil
		case is32:
			return func(b []byte, v *parquet.Value) []byte { return strconv.AppendUint(b, uint64(v.Uint32()), 10) }, nil
		case is64 && t.IsSigned:
			return func(b []byte, v *parquet.Value) []byte { return strconv.AppendInt(b, v.Int64(), 10) }, nil
		case is64:
			return func(b []byte, v *parquet.Value) []byte { return strconv.AppendUint(b, v.Uint64(), 10) }, nil
		}
	case *pqformat.DateType:
		if is32 {
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendDate(b, v.Int32()) }, nil
		}
	case *pqformat.TimeType:
		switch perSecond := perSecond(t.Unit); {
		case is32 && perSecond == 1e3:
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendTimeOfDay(b, int64(v.Int32()), 1e3) }, nil
		case is64 && perSecond > 1e3:
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendTimeOfDay(b, v.Int64(), perSecond) }, nil
		}
	case *pqformat.TimestampType:
		switch perSecond := perSecond(t.Unit); {
		case is64 && perSecond == 1e3:
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendTime(b, time.UnixMilli(v.Int64())) }, nil
		case is64 && perSecond == 1e6:
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendTime(b, time.UnixMicro(v.Int64())) }, nil
		case is64 && perSecond == 1e9:
			return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendTime(b, time.Unix(0, v.Int64())) }, nil
		}
	}
	return nil, fmt.Errorf("%w: %s kept as %s, which the format has no meaning for", parquetio.ErrSchema, logical, kind)
}

// parquetLogicalType returns the logical type of a column, also where only the older converted type
// states it; nil for none.
func parquetLogicalType(e *pqformat.SchemaElement) pqformat.LogicalTypeValue {
	switch {
	case e.LogicalType.Value != nil:
		return e.LogicalType.Value
	case !e.ConvertedType.Valid:
		return nil
	}
	millis, micros := pqformat.TimeUnit{Value: &pqformat.MilliSeconds{}}, pqformat.TimeUnit{Value: &pqformat.MicroSeconds{}}
	switch e.ConvertedType.V {
	case deprecated.UTF8:
		return &pqformat.StringType{}
	case deprecated.Enum:
		return &pqformat.EnumType{}
	case deprecated.Json:
		return &pqformat.JsonType{}
	case deprecated.Bson:
		return &pqformat.BsonType{}
	case deprecated.Decimal:
		return &pqformat.DecimalType{Scale: e.Scale.V, Precision: e.Precision.V}
	case deprecated.Date:
		return &pqformat.DateType{}
	case deprecated.TimeMillis:
		return &pqformat.TimeType{Unit: millis}
	case deprecated.TimeMicros:
		return &pqformat.TimeType{Unit: micros}
	case deprecated.TimestampMillis:
		return &pqformat.TimestampType{Unit: millis}
	case deprecated.TimestampMicros:
		return &pqformat.TimestampType{Unit: micros}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return &pqformat.IntType{}
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return &pqformat.IntType{IsSigned: true}
	}
	return nil
}

func perSecond(unit pqformat.TimeUnit) int64 {
	switch unit.Value.(type) {
	case *pqformat.MilliSeconds:
		return 1e3
	case *pqformat.MicroSeconds:
		return 1e6
	case *pqformat.NanoSeconds:
		return 1e9
	}
	return 0
}

// plainParquetAppender is for columns without a logical type.
func plainParquetAppender(kind parquet.Kind) (parquetAppender, error) {
	switch kind {
	case parquet.Boolean:
		return func(b []byte, v *parquet.Value) []byte { return strconv.AppendBool(b, v.Boolean()) }, nil
	case parquet.Int32:
		return func(b []byte, v *parquet.Value) []byte { return strconv.AppendInt(b, int64(v.Int32()), 10) }, nil
	case parquet.Int64:
		return func(b []byte, v *parquet.Value) []byte { return strconv.AppendInt(b, v.Int64(), 10) }, nil
	case parquet.Int96:
		return appendParquetInt96, nil
	case parquet.Float:
		return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendFloat(b, float64(v.Float()), 32) }, nil
	case parquet.Double:
		return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendFloat(b, v.Double(), 64) }, nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendBytes(b, v.ByteArray()) }, nil
	}
	return nil, fmt.Errorf("%w: values of kind %d", parquetio.ErrSchema, kind)
}

func parquetDecimalAppender(scale int, kind parquet.Kind) (parquetAppender, error) {
	if scale < 0 || scale > jsonvalue.MaxScale {
		return nil, fmt.Errorf("%w: a decimal of scale %d; the limit is %d", parquetio.ErrSchema, scale, jsonvalue.MaxScale)
	}
	switch kind {
	case parquet.Int32:
		return func(b []byte, v *parquet.Value) []byte {
			return jsonvalue.AppendDecimal(b, int64(v.Int32()), scale)
		}, nil
	case parquet.Int64:
		return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendDecimal(b, v.Int64(), scale) }, nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(b []byte, v *parquet.Value) []byte { return jsonvalue.AppendLongDecimal(b, v.ByteArray(), scale) }, nil
	}
	return nil, fmt.Errorf("%w: a decimal kept as %s", parquetio.ErrSchema, kind)
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
