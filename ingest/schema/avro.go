package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

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

// avroJSON is a value that is written as JSON already.
type avroJSON []byte

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
		avro.CustomType{AvroType: "record", Decode: decodeAvroRecord},
	}
}

// decodeAvroRecord makes a number of the record that Debezium writes for a numeric without a declared scale.
func decodeAvroRecord(v any, s *avro.SchemaNode) (any, error) {
	if s.Props["connect.name"] != "io.debezium.data.VariableScaleDecimal" {
		return v, nil
	}
	fields, _ := v.(map[string]any)
	unscaled, bytes := fields["value"].([]byte)
	scale, number := fields["scale"].(int64)
	if !bytes || !number || int64(int(scale)) != scale {
		return v, nil
	}
	return avroDecimal{slices.Clone(unscaled), int(scale)}, nil
}

// decodeAvroInteger gives an int or a long the meaning that its schema states: by its logical type, or by the name that
// Kafka Connect's converter keeps beside it.
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
	logical := s.LogicalType
	if logical == "" {
		logical, _ = s.Props["connect.name"].(string)
	}
	if b, ok := jsonvalue.AppendLogical(nil, logical, n); ok {
		return avroJSON(b), nil
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
	case avroJSON:
		w.buf = append(w.buf, v...)
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
