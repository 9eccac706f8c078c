package decode

import "fmt"

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
	// AttributesTooLarge: see MaxAttributeBytes.
	AttributesTooLarge Code = "attributes_too_large"
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
		RecordTooLarge, TextTooLarge, AttributesTooLarge, TooManyEdges, MissingItem, TooManyItems, SelfLoop, KeyMismatch, BadMirror, BadEncoding,
		UnknownSchema, FutureTime, Foreign, BadCSV, BadChange, Truncated, IDChanged}
}

// Explain says in a sentence what the code means, "" for an unknown code.
func (c Code) Explain() string {
	switch c {
	case BadJSON:
		return "The value is not one well-formed JSON object."
	case BadUTF8:
		return "The key or value is not valid UTF-8, or a string escapes half of a surrogate pair."
	case BadType:
		return "A mapped field has a type that cannot be used there."
	case MissingID:
		return "The node record has no id, neither in its value nor as its key."
	case MissingSrc:
		return "The edge record has no source, neither in its value nor as its key."
	case MissingDst:
		return "The edge record has no destination."
	case BadID:
		return fmt.Sprintf("An id is empty, longer than %d bytes or contains NUL.", MaxIDBytes)
	case BadEventTime:
		return "The event time is neither an RFC 3339 date-time or date nor an integer since 1970, " +
			"or outside the years 1 to 9999."
	case RecordTooLarge:
		return "The value is larger than the limit for records."
	case TextTooLarge:
		return "The text or the class of the node is larger than its limit."
	case AttributesTooLarge:
		return fmt.Sprintf("The attributes of the node have more than %d bytes as JSON.", MaxAttributeBytes)
	case TooManyEdges:
		return "The record has more edges than the limit."
	case MissingItem:
		return "The order record has no item."
	case TooManyItems:
		return "The record has more lines of its order than the limit."
	case SelfLoop:
		return "The edge leads from a node to itself."
	case KeyMismatch:
		return "The record is not in the partition of its node: it was not keyed by the node id (edges: source " +
			"id) with Kafka's murmur2 partitioner."
	case BadEncoding:
		return "The value is not in the wire format of a schema registry, or its bytes do not fit its schema."
	case UnknownSchema:
		return "The schema registry has no schema with the id that the value names, or none that can be used."
	case FutureTime:
		return "The event time is further ahead of the clock than ingest.max_future allows, so the record would win " +
			"over every correction until then."
	case Foreign:
		return "The record on the dead-letter topic is not a dead letter: another program wrote it."
	case BadCSV:
		return "The line of the file is not a CSV row like the header."
	case BadChange:
		return "The value is no change event of Debezium, or lacks a column of the row that the mapping needs."
	case Truncated:
		return "The source table was truncated. Nothing is deleted, because the event names no row."
	case IDChanged:
		return "A row has another id than before its update: the new id is stated, the old one is not deleted."
	case BadMirror:
		return "The record on the internal mirror topic is not one of ours."
	}
	return ""
}

// Fault says why a record, or some of its edges, could not be used.
type Fault struct {
	Code Code
	// Message is for people: which field, which edge, what was found.
	Message string
}

func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

func faultf(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}
