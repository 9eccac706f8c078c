package decode

import (
	"fmt"

	"giantstream/stream/mutation"
)

// Code names a kind of fault. Codes are stable: dead letters, filters of the command line and
// users' alerts contain them.
type Code string

// The codes.
const (
	BadJSON        Code = "bad_json"
	BadUTF8        Code = "bad_utf8"
	BadType        Code = "bad_type"
	MissingID      Code = "missing_id"
	MissingSrc     Code = "missing_src"
	MissingDst     Code = "missing_dst"
	BadID          Code = "bad_id"
	MissingItem    Code = "missing_item"
	TooManyItems   Code = "too_many_items"
	BadEventTime   Code = "bad_event_time"
	RecordTooLarge Code = "record_too_large"
	TextTooLarge   Code = "text_too_large"
	TooManyEdges   Code = "too_many_edges"
	SelfLoop       Code = "self_loop"
	BadWeight      Code = "bad_weight"
	BadKind        Code = "bad_kind"
	// AttributesTooLarge: see MaxAttributeBytes.
	AttributesTooLarge Code = "attributes_too_large"
	VectorLength       Code = "vector_length"
	VectorNotFinite    Code = "vector_not_finite"
	VectorZero         Code = "vector_zero"
	VectorOverflow     Code = "vector_overflow"
	KeyMismatch        Code = "key_mismatch"
	BadMirror          Code = "bad_mirror"
	BadEncoding        Code = "bad_encoding"
	UnknownSchema      Code = "unknown_schema"
	FutureTime         Code = "future_event_time"
	Foreign            Code = "foreign"
	BadCSV             Code = "bad_csv"
	BadChange          Code = "bad_change"
	Truncated          Code = "truncated"
	IDChanged          Code = "id_changed"
)

// Codes returns all codes, in the order of the documentation.
func Codes() []Code {
	return []Code{BadJSON, BadUTF8, BadType, MissingID, MissingSrc, MissingDst, BadID, BadEventTime,
		RecordTooLarge, TextTooLarge, AttributesTooLarge, VectorLength,
		VectorNotFinite, VectorZero, VectorOverflow, TooManyEdges, MissingItem, TooManyItems, SelfLoop,
		BadWeight, BadKind, KeyMismatch, BadMirror, BadEncoding,
		UnknownSchema, FutureTime, Foreign, BadCSV, BadChange, Truncated, IDChanged}
}

// explanations say in a sentence what the codes mean.
var explanations = map[Code]string{
	BadJSON:    "The value is not one well-formed JSON object.",
	BadUTF8:    "The key or value is not valid UTF-8, or a string escapes half of a surrogate pair.",
	BadType:    "A mapped field has a type that cannot be used there.",
	MissingID:  "The record of a node or an order has no id, neither in its value nor as its key.",
	MissingSrc: "The edge record has no source, neither in its value nor as its key.",
	MissingDst: "The edge record has no destination.",
	BadID:      fmt.Sprintf("An id is empty, longer than %d bytes or contains NUL.", MaxIDBytes),
	BadEventTime: "The event time is neither a date-time or date of ISO 8601 nor an integer since 1970, " +
		"or outside the years 1 to 9999.",
	RecordTooLarge:     "The value is larger than the limit for records.",
	TextTooLarge:       "The text or the class of the node is larger than its limit.",
	AttributesTooLarge: fmt.Sprintf("The attributes of the node have more than %d bytes as JSON.", MaxAttributeBytes),
	VectorLength:       "A vector has more or fewer numbers than the mapping says.",
	VectorNotFinite:    "A vector has a number that is not finite (NaN or infinity).",
	VectorZero:         "All numbers of a vector are 0, as they would be kept.",
	VectorOverflow:     "A vector has a number that is too large for the precision in which it is kept.",
	TooManyEdges:       "The record has more edges than the limit.",
	MissingItem:        "The order record has no item.",
	TooManyItems:       "The record has more lines of its order than the limit.",
	SelfLoop:           "The edge leads from a node to itself.",
	BadWeight:          "The weight of the edges is no finite number, or below 0.",
	BadKind: fmt.Sprintf("The kind of the edges is longer than %d bytes, contains NUL or has another type, or the "+
		"record takes an edge back without the value that says its kind.", mutation.MaxKindBytes),
	KeyMismatch: "The record is not in the partition of its node: it was not keyed by the node id (edges: source " +
		"id) with Kafka's murmur2 partitioner.",
	BadEncoding:   "The value is not in the wire format of a schema registry, or its bytes do not fit its schema.",
	UnknownSchema: "The schema registry has no schema with the id that the value names, or none that can be used.",
	FutureTime: "The event time is further ahead of the clock than ingest.max_future allows, so the record would win " +
		"over every correction until then.",
	Foreign:   "The record on the dead-letter topic is not a dead letter: another program wrote it.",
	BadCSV:    "The line of the file is not a CSV row like the header.",
	BadChange: "The value is no change event of Debezium, or lacks a column of the row that the mapping needs.",
	Truncated: "The source table was truncated. Nothing is deleted, because the event names no row.",
	IDChanged: "A row has another id than before its update: the new id is stated, the old one is not deleted.",
	BadMirror: "The record on the internal mirror topic is not one of ours.",
}

// Explain says in a sentence what the code means, "" for an unknown code.
func (c Code) Explain() string { return explanations[c] }

// Fault says why a record, or some of its edges, could not be used.
type Fault struct {
	Code Code
	// Message is for people: which field, which edge, what was found.
	Message string
	// Loops: all that was left out are edges from a node to itself.
	Loops bool
}

func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

func faultf(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}
