package deadletter

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"giantstream/ingest/decode"

	"github.com/segmentio/kafka-go"
)

var at = time.Date(2024, 5, 1, 12, 0, 0, 123e6, time.UTC)

func TestRoundTrip(t *testing.T) {
	for name, l := range map[string]Letter{
		"record of a topic": {Origin: Origin{Topic: "nodes", Partition: 3, Offset: 17}, Code: decode.BadJSON,
			Message: "ends too early at byte 5",
			Key:     []byte("k"), Value: []byte(`{"id"`), Time: at, At: at, ReplayOf: "nodes/1/2"},
		"line of a file": {Origin: Origin{Topic: "edges", File: "s3://b/e.jsonl", Line: 9}, Code: decode.RecordTooLarge,
			Value: []byte("beginning"), Size: 5 << 30, SHA256: "abc", Time: at, At: at},
		"copy": {Origin: Origin{Topic: "nodes", Partition: 3, Offset: 17, CopiedTo: "shop.nodes.keyed", Epoch: 2},
			Copy: &CopyPlace{0, 0}, Code: decode.BadJSON, Value: []byte("{"), Time: at, At: at},
		"null": {Origin: Origin{Topic: "nodes", Offset: 1}, Code: decode.MissingID, Time: at, At: at},
	} {
		l.cut()
		got, err := Parse(l.message("dlq"))
		if err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, got, err, l)
		}
	}
}

// TestTimestampBeyondRFC3339: such a record is refused as one from the future, and its letter must be one.
func TestTimestampBeyondRFC3339(t *testing.T) {
	for _, beyond := range []time.Time{time.UnixMilli(at.UnixMicro()), time.UnixMilli(math.MaxInt64)} {
		l := Letter{Origin: Origin{Topic: "nodes"}, Code: decode.FutureTime, Time: beyond, At: at}
		got, err := Parse(l.message("dlq"))
		if err != nil || !got.Time.Equal(lastTime) {
			t.Errorf("%v: got %v, %v", beyond, got.Time, err)
		}
	}
}

func TestLargeValuesAreCut(t *testing.T) {
	l := Letter{Origin: Origin{Topic: "nodes"}, Value: bytes.Repeat([]byte("x"), maxValueBytes)}
	if l.cut(); l.Truncated() {
		t.Error("a value at the limit was cut")
	}
	l = Letter{Origin: Origin{Topic: "nodes"}, Value: bytes.Repeat([]byte("x"), maxValueBytes+1)}
	if l.cut(); !l.Truncated() || len(l.Value) != CutBytes || l.Size != maxValueBytes+1 || len(l.SHA256) != 64 {
		t.Errorf("%d bytes of %d, hash %q", len(l.Value), l.Size, l.SHA256)
	}
}

func TestForeignRecordsAreRefused(t *testing.T) {
	good := (&Letter{Origin: Origin{Topic: "nodes"}, Time: at}).message("dlq")
	for _, change := range []func(*kafka.Message){
		func(m *kafka.Message) { m.Headers = nil },
		func(m *kafka.Message) { m.Headers[0].Value = []byte("2") },
		func(m *kafka.Message) { m.Headers[2].Value = []byte("many") },
		func(m *kafka.Message) {
			m.Headers = append(m.Headers, kafka.Header{Key: hCode, Value: []byte(decode.Foreign)})
		},
	} {
		m := good
		m.Headers = append([]kafka.Header(nil), good.Headers...)
		change(&m)
		if l, err := Parse(m); !errors.Is(err, errNotALetter) {
			t.Errorf("headers %v gave %+v, %v", m.Headers, l, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1", "nodes", "3", "17", "2024-05-01T12:00:00Z", "", "", "keyed", "2")
	f.Add("1", "nodes", "-", "", "", "f.jsonl", "x", "", "")
	f.Fuzz(func(t *testing.T, format, topic, partition, offset, stamp, file, line, copied, at string) {
		m := kafka.Message{Headers: []kafka.Header{
			{Key: hFormat, Value: []byte(format)}, {Key: hTopic, Value: []byte(topic)},
			{Key: hPartition, Value: []byte(partition)},
			{Key: hOffset, Value: []byte(offset)}, {Key: hTime, Value: []byte(stamp)},
			{Key: hFile, Value: []byte(file)}, {Key: hLine, Value: []byte(line)},
			{Key: hCopy, Value: []byte(copied)}, {Key: hCopyAt, Value: []byte(at)}, {Key: hEpoch, Value: []byte(at)},
		}}
		l, err := Parse(m)
		if err == nil && (l.Topic == "" || l.String() == "") {
			t.Errorf("letter without an origin: %+v", l)
		}
	})
}
