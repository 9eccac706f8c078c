package schema

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"giantstream/ingest/decode"
)

// Format of a topic's values.
type Format string

// The formats.
const (
	JSON     Format = "json"
	Avro     Format = "avro"
	Protobuf Format = "protobuf"
)

// Growth bounds how many times larger than its encoding a value may be as JSON, which names every
// field.
const Growth = 16

const (
	// maxSchemas bounds the schemas that are kept; topics have a handful.
	maxSchemas = 1000
	// forgetUnknown is how long an unknown id is not requested again. A registry that follows
	// another one learns of a schema a moment later.
	forgetUnknown = 30 * time.Second
)

// Translator makes JSON of the values of a topic. It is safe for concurrent use.
type Translator struct {
	registry *Registry
	kind     sr.SchemaType
	compile  func(context.Context, *source) (codec, error)
	limit    int

	mu      sync.Mutex
	schemas map[int]*entry
	order   []int // ids in schemas, the oldest first
}

// codec makes JSON of the values of one schema.
type codec interface {
	appendJSON(w *writer, value []byte) error
	// scalar returns the text of a value that is a string or an integer and no record, as keys may be.
	scalar(value []byte) (text string, ok bool)
}

// entry is what is known of a schema id. Its lock is held during the request to the registry, so
// that a schema is fetched once for all shards.
type entry struct {
	mu      sync.Mutex
	codec   codec
	unknown error
	at      time.Time // of unknown
}

// NewTranslator returns a translator for topics of Avro or Protobuf. Values over maxBytes get a
// fault.
func NewTranslator(f Format, r *Registry, maxBytes int) (*Translator, error) {
	t := &Translator{registry: r, limit: maxBytes, schemas: map[int]*entry{}}
	switch f {
	case Avro:
		t.kind, t.compile = sr.TypeAvro, compileAvro
	case Protobuf:
		t.kind, t.compile = sr.TypeProtobuf, compileProtobuf
	default:
		return nil, fmt.Errorf("schema: nothing to translate in format %q", f)
	}
	return t, nil
}

// JSON appends the value as a JSON object to dst; null stays nil. A fault is the value's own. An
// error means that the registry could not be asked, so the same value may be good later.
func (t *Translator) JSON(ctx context.Context, dst, value []byte) ([]byte, *decode.Fault, error) {
	switch {
	case value == nil:
		return nil, nil, nil
	case isJSON(value):
		return append(dst, value...), nil, nil
	case len(value) > t.limit:
		return nil, faultf(decode.RecordTooLarge, "the value has %d bytes; the limit is %d", len(value), t.limit), nil
	}
	var header sr.ConfluentHeader
	id, rest, err := header.DecodeID(value)
	if err != nil {
		return nil, faultf(decode.BadEncoding, "the value begins with neither a zero byte and a schema id, as "+
			"producers with a schema registry write, nor a brace"), nil
	}
	c, err := t.codec(ctx, id)
	switch {
	case errors.Is(err, errUnknown) && (id == 0 || id >= 1<<24): // registries count from 1
		return nil, faultf(decode.UnknownSchema, "%v; where Apicurio's producer writes, set "+
			"apicurio.registry.as-confluent=true, else ids have 8 bytes, and apicurio.registry.headers.enabled=false, "+
			"else they are in headers", err), nil
	case errors.Is(err, errUnknown):
		return nil, faultf(decode.UnknownSchema, "%v", err), nil
	case err != nil:
		return nil, nil, err
	}
	w := writer{buf: dst, max: len(dst) + Growth*t.limit}
	err = c.appendJSON(&w, rest)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, faultf(decode.RecordTooLarge, "the value has more than %d bytes as JSON", Growth*t.limit), nil
	case err != nil:
		return nil, faultf(decode.BadEncoding, "the value does not fit schema %d: %v", id, err), nil
	}
	return w.buf, nil, nil
}

// Key returns the key of a record in the form that package decode knows: one with a schema as a JSON
// object or, if it is a string or an integer, as plain text; any other unchanged. So is a key whose schema
// or bytes are at fault: only a record without an id in its value needs its key, and package decode
// says so then. An error means that the registry could not be asked. A nil translator changes no key.
func (t *Translator) Key(ctx context.Context, key []byte) ([]byte, error) {
	if t == nil || len(key) == 0 || key[0] != 0 || len(key) > t.limit {
		return key, nil
	}
	var header sr.ConfluentHeader
	id, rest, err := header.DecodeID(key)
	if err != nil {
		return key, nil //nolint:nilerr // a key of some other form
	}
	c, err := t.codec(ctx, id)
	if errors.Is(err, errUnknown) {
		return key, nil
	}
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if text, ok := c.scalar(rest); ok {
		return []byte(text), nil
	}
	w := writer{max: Growth * t.limit}
	if err := c.appendJSON(&w, rest); err != nil {
		return key, nil //nolint:nilerr // the key's fault, which package decode words where it needs the key
	}
	return w.buf, nil
}

// isJSON: values with a schema begin with a zero byte.
func isJSON(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	switch value[0] {
	case '{', ' ', '\n', '\r', '\t':
		return true
	}
	return false
}

// codec returns the codec of a schema. The error wraps errUnknown if the registry has no usable
// schema of that id; any other error means that the registry could not be asked.
func (t *Translator) codec(ctx context.Context, id int) (codec, error) {
	e := t.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.codec != nil {
		return e.codec, nil
	}
	if e.unknown != nil && t.registry.clock().Sub(e.at) < forgetUnknown {
		return nil, e.unknown
	}
	s, err := t.registry.fetch(ctx, id)
	if err == nil {
		e.codec, err = t.compiled(ctx, id, s)
	}
	if errors.Is(err, errUnknown) {
		e.unknown, e.at = err, t.registry.clock()
	}
	return e.codec, err
}

func (t *Translator) compiled(ctx context.Context, id int, s *source) (codec, error) {
	if s.Type != t.kind {
		return nil, fmt.Errorf("schema %d: %w as %v: it is %v", id, errUnknown, t.kind, s.Type)
	}
	c, err := t.compile(ctx, s)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("schema %d: %w in a form that can be read: %w", id, errUnknown, err)
	}
	return c, nil
}

// entry returns the entry of an id, making room for a new one.
func (t *Translator) entry(id int) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.schemas[id]
	if e == nil {
		if len(t.order) == maxSchemas {
			delete(t.schemas, t.order[0])
			t.order = t.order[1:]
		}
		e = &entry{}
		t.schemas[id], t.order = e, append(t.order, id)
	}
	return e
}

func faultf(code decode.Code, format string, args ...any) *decode.Fault {
	return &decode.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}
