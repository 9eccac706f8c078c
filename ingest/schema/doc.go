// Package schema reads values that name their schema: Avro and Protobuf in the
// wire format of Confluent's schema registry, which Karapace, Apicurio and
// Redpanda speak too.
//
//	registry, err := schema.NewRegistry(schema.Options{URL: "https://registry:8081", Clock: time.Now})
//	t, err := schema.NewTranslator(schema.Avro, registry, limits.RecordBytes)
//	json, fault, err := t.JSON(ctx, buf[:0], value)
//
// A value becomes the JSON object that a producer of JSON would have sent, so
// the field mapping of package decode, its limits and its codes apply to all
// formats alike, and there is one path from a record to the graph. Topics of
// JSON never come here.
//
// # Wire format
//
// A zero byte, the schema's id (4 bytes, big endian), for Protobuf the path of
// the message in its file (a count and indexes, zigzag varints; a single 0 is
// the first message), then the encoded value. A value that begins with a brace
// or white space is taken for JSON and passed on as it is: no value with a
// schema can begin so, and it is what a backfill sends.
//
// # What fails how
//
// A value whose bytes are wrong, or whose schema id the registry does not know,
// gets a fault: it is a dead letter, and the next one is tried. A registry
// that does not answer, or that answers with anything but a schema or "no such
// schema", is an error: the caller waits and tries the same value again.
// Nothing good is dead-lettered because a registry was away.
//
// Schemas never change under their id, so they are kept once fetched, the
// latest thousand of them. That an id is unknown is remembered for half a
// minute.
package schema
