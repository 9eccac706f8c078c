// Package schema reads values that name their schema: Avro and Protobuf in the wire format of
// Confluent's schema registry, which Karapace, Apicurio and Redpanda speak too. A Registry fetches
// schemas, and a Translator makes JSON of the values of a topic.
//
// A value becomes the JSON object that a producer of JSON would have sent. So the field mapping of
// package decode, its limits and its codes apply to all formats alike, and there is one path from a
// record to the graph. Topics of JSON never come here.
//
// # Wire format
//
// A value is a zero byte, the schema's id (4 bytes, big endian), for Protobuf the path of the
// message in its file (a count and indexes, zigzag varints; a single 0 is the first message), then
// the encoded value. A value that begins with a brace or white space is JSON and passes unchanged:
// no value with a schema can begin so, and a backfill sends JSON.
//
// # Faults and errors
//
// A value with wrong bytes, or with a schema id that the registry does not know, gets a fault: the
// record becomes a dead letter, and the next record is tried. A registry that does not answer, or
// answers with anything but a schema or "no such schema", is an error: the caller waits and tries
// the same value again. So no good record is dead-lettered because a registry was away.
//
// A schema never changes under its id, so schemas are cached, the latest thousand of them. An
// unknown id is remembered for half a minute.
package schema
