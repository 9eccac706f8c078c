package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/avro"

	"giantstream/ingest/jsonvalue"
)

// avroCodec reads values with the schema that they were written with, and names fields as the
// schema does. A union becomes the value of its branch.
type avroCodec struct{ schema *avro.Schema }

func compileAvro(_ context.Context, s *source) (codec, error) {
	var cache avro.SchemaCache
	options := append(avroTypes(), avro.WithLaxNames(nil))
	for _, ref := range s.references {
		if _, err := cache.Parse(ref.text, options...); err != nil {
			return nil, fmt.Errorf("reference %q: %w", ref.name, err)
		}
	}
	parsed, err := cache.Parse(s.Schema.Schema, options...)
	if err != nil {
		return nil, err
	}
	return avroCodec{parsed}, nil
}

// avroDecimal is an unscaled number in two's complement. The library's *big.Rat has lost the scale.
type avroDecimal struct {
	unscaled []byte
	scale    int
}

// avroDate counts days from 1970-01-01. The library's time.Time cannot be told from a timestamp.
type avroDate int32

// avroTimeOfDay counts parts of a second from midnight.
type avroTimeOfDay struct{ n, perSecond int64 }

// avroTypes are the types whose meaning the library would lose. What is given for a type replaces all
// that the library makes of it.
func avroTypes() []avro.SchemaOpt {
	decimal := func(v any, s *avro.SchemaNode) (any, error) {
		unscaled, ok := v.([]byte)
		if !ok {
			return nil, fmt.Errorf("a decimal is kept as %T", v)
		}
		return avroDecimal{slices.Clone(unscaled), s.Scale}, nil
	}
	return []avro.SchemaOpt{
		avro.CustomType{LogicalType: "decimal", AvroType: "bytes", Decode: decimal},
		avro.CustomType{LogicalType: "decimal", AvroType: "fixed", Decode: decimal},
		avro.CustomType{AvroType: "int", Decode: decodeAvroInteger},
		avro.CustomType{AvroType: "long", Decode: decodeAvroInteger},
	}
}

// decodeAvroInteger gives an int or a long the meaning that its schema states: by its logical type, or by
// the name that Kafka Connect's converter keeps beside it, which is where Debezium has the unit of a
// time.
// https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-temporal-types
func decodeAvroInteger(v any, s *avro.SchemaNode) (any, error) {
	var n int64
	switch v := v.(type) {
	case int32:
		n = int64(v)
	case int64:
		n = v
	default:
		return nil, fmt.Errorf("an integer is kept as %T", v)
	}
	meaning := s.LogicalType
	if meaning == "" {
		meaning, _ = s.Props["connect.name"].(string)
	}
	switch meaning {
	case "date", "io.debezium.time.Date", "org.apache.kafka.connect.data.Date":
		if n == int64(int32(n)) {
			return avroDate(n), nil
		}
	case "timestamp-millis", "local-timestamp-millis", "io.debezium.time.Timestamp",
		"org.apache.kafka.connect.data.Timestamp":
		return time.UnixMilli(n), nil
	case "timestamp-micros", "local-timestamp-micros", "io.debezium.time.MicroTimestamp":
		return time.UnixMicro(n), nil
	case "timestamp-nanos", "local-timestamp-nanos", "io.debezium.time.NanoTimestamp":
		return time.Unix(0, n), nil
	case "time-millis", "io.debezium.time.Time", "org.apache.kafka.connect.data.Time":
		return avroTimeOfDay{n, 1e3}, nil
	case "time-micros", "io.debezium.time.MicroTime":
		return avroTimeOfDay{n, 1e6}, nil
	case "io.debezium.time.NanoTime":
		return avroTimeOfDay{n, 1e9}, nil
	}
	return n, nil
}

func (c avroCodec) appendJSON(w *writer, value []byte) error {
	var v any
	rest, err := c.schema.Decode(value, &v)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes are left over", len(rest))
	}
	if _, record := v.(map[string]any); !record {
		return errors.New("it is not a record")
	}
	return w.avro(v)
}

func (c avroCodec) scalar(value []byte) (text string, ok bool) {
	var v any
	if rest, err := c.schema.Decode(value, &v); err != nil || len(rest) > 0 {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}

// avro writes what package avro decodes into an interface.
func (w *writer) avro(v any) error {
	switch v := v.(type) {
	case nil:
		w.null()
	case bool:
		w.bool(v)
	case int64:
		w.int(v)
	case float32:
		w.float(float64(v), 32)
	case float64:
		w.float(v, 64)
	case string:
		w.str(v)
	case []byte:
		w.bytes(v)
	case time.Time: // timestamp-*, local-timestamp-*
		w.buf = jsonvalue.AppendTime(w.buf, v)
	case avroDate:
		w.buf = jsonvalue.AppendDate(w.buf, int32(v))
	case avroTimeOfDay:
		w.buf = jsonvalue.AppendTimeOfDay(w.buf, v.n, v.perSecond)
	case avroDecimal:
		w.buf = jsonvalue.AppendLongDecimal(w.buf, v.unscaled, v.scale)
	case [16]byte: // uuid
		w.buf = jsonvalue.AppendUUID(w.buf, v[:])
	case avro.Duration:
		w.buf = jsonvalue.AppendInterval(w.buf, v.Months, v.Days, v.Milliseconds)
	case []any:
		return w.avroList(v)
	case map[string]any:
		return w.avroObject(v)
	default:
		return fmt.Errorf("a value of type %T is not expected", v)
	}
	return nil
}

func (w *writer) avroList(v []any) error {
	w.raw("[")
	for i := range v {
		if err := w.separate(i); err != nil {
			return err
		}
		if err := w.avro(v[i]); err != nil {
			return err
		}
	}
	w.raw("]")
	return nil
}

func (w *writer) avroObject(v map[string]any) error {
	w.raw("{")
	for i, name := range slices.Sorted(maps.Keys(v)) {
		if err := w.field(i, name); err != nil {
			return err
		}
		if err := w.avro(v[name]); err != nil {
			return err
		}
	}
	w.raw("}")
	return nil
}
