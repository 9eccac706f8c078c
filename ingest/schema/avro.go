package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/twmb/avro"
)

// avroCodec reads values with the schema that they were written with, and names fields as the
// schema does. A union becomes the value of its branch.
type avroCodec struct{ schema *avro.Schema }

func compileAvro(_ context.Context, s *source) (codec, error) {
	var cache avro.SchemaCache
	for _, ref := range s.references {
		if _, err := cache.Parse(ref.text, avro.WithLaxNames(nil)); err != nil {
			return nil, fmt.Errorf("reference %q: %w", ref.name, err)
		}
	}
	parsed, err := cache.Parse(s.Schema.Schema, avro.WithLaxNames(nil))
	if err != nil {
		return nil, err
	}
	return avroCodec{parsed}, nil
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

// avro writes what package avro decodes into an interface.
func (w *writer) avro(v any) error {
	switch v := v.(type) {
	case nil:
		w.null()
	case bool:
		w.bool(v)
	case int32:
		w.int(int64(v))
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
	case time.Time: // date, timestamp-*
		w.time(v)
	case time.Duration: // time-millis, time-micros
		w.int(v.Microseconds())
	case *big.Rat: // decimal
		digits, _ := v.FloatPrec()
		w.number(v.FloatString(digits))
	case [16]byte: // uuid
		w.str(fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]))
	case avro.Duration:
		w.str(fmt.Sprintf("P%dM%dDT%d.%03dS", v.Months, v.Days, v.Milliseconds/1000, v.Milliseconds%1000))
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
