package schema

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bufbuild/protocompile"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"giantstream/ingest/jsonvalue"
)

// protobufCodec reads values of the messages of one .proto file, and names fields as the file does.
// A field that is not set is absent.
type protobufCodec struct{ file protoreflect.FileDescriptor }

const (
	// mainFile is a name that no import has.
	mainFile = "giantstream/value.proto"
	// google begins the paths of the files that come with Protobuf.
	google = "google/protobuf/"
	// maxNesting bounds messages in messages, and the path of a message.
	maxNesting = 100
)

func compileProtobuf(ctx context.Context, s *source) (codec, error) {
	files := map[string]string{mainFile: s.Schema.Schema}
	for _, ref := range s.references {
		files[ref.name] = ref.text
	}
	// What is known needs no reference, and only ours are trusted.
	maps.DeleteFunc(files, func(path, _ string) bool { return strings.HasPrefix(path, google) })
	maps.Copy(files, known)
	compiler := protocompile.Compiler{
		MaxParallelism: 1,
		Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(
			func(path string) (found protocompile.SearchResult, err error) {
				text, ok := files[path]
				if !ok {
					return found, fmt.Errorf("%q is not among the schema's references: %w", path, fs.ErrNotExist)
				}
				if found.Proto = descriptorOf(path, text); found.Proto == nil {
					found.Source = strings.NewReader(text)
				}
				return found, nil
			})),
	}
	compiled, err := compiler.Compile(ctx, mainFile)
	if err != nil {
		return nil, err
	}
	return protobufCodec{compiled[0]}, nil
}

// descriptorOf returns what a file says that a registry has as a descriptor in base64, nil for a text. Confluent's
// serializers for Python and .NET register files so, and only Confluent's own registry makes a text of it.
func descriptorOf(path, file string) *descriptorpb.FileDescriptorProto {
	b, err := base64.StdEncoding.DecodeString(file)
	if err != nil {
		return nil
	}
	d := &descriptorpb.FileDescriptorProto{}
	if (proto.UnmarshalOptions{RecursionLimit: maxNesting}).Unmarshal(b, d) != nil {
		return nil
	}
	d.Name = &path
	nameFields(d.MessageType)
	return d
}

// nameFields gives fields names in JSON, which must differ, and which nobody asks for.
func nameFields(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		for _, f := range m.Field {
			f.JsonName = f.Name
		}
		nameFields(m.NestedType)
	}
}

// appendJSON: no value and no schema may end the process. The library panics on a map entry whose key comes a second
// time with another wire type (google.golang.org/protobuf v1.36.12, proto.unmarshalMap), and where a descriptor
// contradicts itself.
func (c protobufCodec) appendJSON(w *writer, value []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be decoded: %v", p)
		}
	}()
	var header sr.ConfluentHeader
	path, rest, err := header.DecodeIndex(value, maxNesting)
	if err != nil {
		return errors.New("the path of its message cannot be read")
	}
	d, err := c.message(path)
	if err != nil {
		return err
	}
	m := dynamicpb.NewMessage(d)
	as := proto.UnmarshalOptions{AllowPartial: true, DiscardUnknown: true, RecursionLimit: maxNesting}
	if err := as.Unmarshal(rest, m); err != nil {
		return err
	}
	return w.message(m)
}

// scalar: Protobuf has no values that are no messages.
func (c protobufCodec) scalar([]byte) (string, bool) { return "", false }

// message follows the path of indexes: that of a message in the file, then those of messages nested
// in it.
func (c protobufCodec) message(path []int) (protoreflect.MessageDescriptor, error) {
	var d protoreflect.MessageDescriptor
	for messages := c.file.Messages(); len(path) > 0; messages, path = d.Messages(), path[1:] {
		if path[0] < 0 || path[0] >= messages.Len() {
			return nil, fmt.Errorf("it has no message %d where the value wants one", path[0])
		}
		d = messages.Get(path[0])
	}
	if d == nil {
		return nil, errors.New("the value names no message")
	}
	return d, nil
}

// message writes a message.
func (w *writer) message(m protoreflect.Message) error {
	d := m.Descriptor()
	file := d.ParentFile().Path()
	get := func(name protoreflect.Name) protoreflect.Value { return m.Get(d.Fields().ByName(name)) }
	switch {
	case file == confluentDecimal:
		w.buf = jsonvalue.AppendLongDecimal(w.buf, get("value").Bytes(), int(get("scale").Int()))
		return nil
	case file == googleDate && w.date(get("year").Int(), get("month").Int(), get("day").Int()):
		return nil
	case strings.HasPrefix(file, google):
		if known, err := w.wellKnown(m); known {
			return err
		}
	}
	w.raw("{")
	n := 0
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if !m.Has(f) {
			continue
		}
		if err := w.field(n, string(f.Name())); err != nil {
			return err
		}
		n++
		if err := w.protoField(f, m.Get(f)); err != nil {
			return err
		}
	}
	if file == googleMoney { // paths cannot add up
		if err := w.field(n, "amount"); err != nil {
			return err
		}
		w.raw(amount(get("units").Int(), get("nanos").Int()))
	}
	w.raw("}")
	return nil
}

// amount writes units and billionths of them, which have the same sign.
func amount(units, nanos int64) string {
	sign := ""
	if units == 0 && nanos < 0 {
		sign = "-"
	}
	number := fmt.Sprintf("%s%d.%09d", sign, units, max(nanos, -nanos))
	return strings.TrimRight(strings.TrimRight(number, "0"), ".")
}

// date writes a day, and reports whether it is one: without a year, a month or a day it is an object.
// https://github.com/googleapis/googleapis/blob/master/google/type/date.proto
func (w *writer) date(year, month, day int64) bool {
	t := time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	if year < 1 || year > 9999 || int64(t.Month()) != month || int64(t.Day()) != day {
		return false
	}
	w.str(t.Format(time.DateOnly))
	return true
}

// wellKnown writes those of Google's messages that stand for a value as that value.
func (w *writer) wellKnown(m protoreflect.Message) (known bool, err error) {
	d := m.Descriptor()
	get := func(name protoreflect.Name) protoreflect.Value { return m.Get(d.Fields().ByName(name)) }
	switch d.Name() {
	case "Timestamp":
		return w.timestamp(get("seconds").Int(), get("nanos").Int()), nil
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
		"StringValue", "BytesValue":
		return true, w.proto(d.Fields().ByName("value"), get("value"))
	case "Struct":
		return true, w.protoMap(d.Fields().ByName("fields"), get("fields").Map())
	case "ListValue":
		return true, w.protoList(d.Fields().ByName("values"), get("values").List())
	case "Value":
		kind := m.WhichOneof(d.Oneofs().ByName("kind"))
		if kind == nil || kind.Name() == "null_value" {
			w.null()
			return true, nil
		}
		return true, w.proto(kind, m.Get(kind))
	}
	return false, nil
}

// timestamp writes a Timestamp, and reports whether it is one: the message's page bounds it to the
// years 1 to 9999. The fields of one that is not are written, and no event time can be mapped to them.
// https://protobuf.dev/reference/protobuf/google.protobuf/#timestamp
func (w *writer) timestamp(seconds, nanos int64) bool {
	const year1, year10000 = -62135596800, 253402300800
	if seconds < year1 || seconds >= year10000 || nanos < 0 || nanos >= 1e9 {
		return false
	}
	w.buf = jsonvalue.AppendTime(w.buf, time.Unix(seconds, nanos))
	return true
}

func (w *writer) protoField(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsList():
		return w.protoList(f, v.List())
	case f.IsMap():
		return w.protoMap(f, v.Map())
	}
	return w.proto(f, v)
}

func (w *writer) protoList(f protoreflect.FieldDescriptor, list protoreflect.List) error {
	w.raw("[")
	for i := range list.Len() {
		if err := w.separate(i); err != nil {
			return err
		}
		if err := w.proto(f, list.Get(i)); err != nil {
			return err
		}
	}
	w.raw("]")
	return nil
}

func (w *writer) protoMap(f protoreflect.FieldDescriptor, m protoreflect.Map) error {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	for k := range m.Range {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	w.raw("{")
	for i, k := range keys {
		if err := w.field(i, k.String()); err != nil {
			return err
		}
		if err := w.proto(f.MapValue(), m.Get(k)); err != nil {
			return err
		}
	}
	w.raw("}")
	return nil
}

// proto writes one value of a field.
func (w *writer) proto(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch f.Kind() {
	case protoreflect.BoolKind:
		w.bool(v.Bool())
	case protoreflect.EnumKind:
		if named := f.Enum().Values().ByNumber(v.Enum()); named != nil {
			w.str(string(named.Name()))
		} else {
			w.int(int64(v.Enum()))
		}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		w.int(v.Int())
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		w.uint(v.Uint())
	case protoreflect.FloatKind:
		w.float(v.Float(), 32)
	case protoreflect.DoubleKind:
		w.float(v.Float(), 64)
	case protoreflect.StringKind:
		w.str(v.String())
	case protoreflect.BytesKind:
		w.bytes(v.Bytes())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return w.message(v.Message())
	}
	return nil
}
