package client

import (
	"testing"

	"github.com/segmentio/kafka-go/protocol"
)

func records(offsets ...int64) *protocol.RecordBatch {
	rs := make([]protocol.Record, len(offsets))
	for i, o := range offsets {
		rs[i] = protocol.Record{Offset: o, Value: protocol.NewBytes([]byte("v"))}
	}
	return &protocol.RecordBatch{Records: protocol.NewRecordReader(rs...)}
}

func marker(offset int64) *protocol.ControlBatch {
	m := protocol.ControlRecord{Offset: offset, Type: 1}
	return protocol.NewControlBatch(m)
}

func TestReadPassesMarkersAndCompactedRecords(t *testing.T) {
	cases := []struct {
		name    string
		from    int64
		batches []protocol.RecordReader
		want    []int64
		next    int64
	}{
		{"a batch that begins before the offset", 5, []protocol.RecordReader{records(3, 4, 5, 6)}, []int64{5, 6}, 7},
		{"compaction left gaps", 5, []protocol.RecordReader{records(9), records(20)}, []int64{9, 20}, 21},
		{"a transaction marker ends the log", 5, []protocol.RecordReader{records(5), marker(6)}, []int64{5}, 7},
		{"a marker alone", 6, []protocol.RecordReader{marker(6)}, nil, 7},
		{"compaction emptied the batch", 5, []protocol.RecordReader{records()}, nil, 6},
		{"compaction removed the batch's last records", 5, []protocol.RecordReader{records(3, 4)}, nil, 6},
		{"nothing yet", 5, nil, nil, 5},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := Fetched{Next: c.from, HighWater: 100}
			if err := f.read(&protocol.RecordStream{Records: c.batches}); err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, r := range f.Records {
				got = append(got, r.Offset)
			}
			if len(got) != len(c.want) || f.Next != c.next {
				t.Fatalf("got %v, next %d; want %v, %d", got, f.Next, c.want, c.next)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("got %v, want %v", got, c.want)
				}
			}
		})
	}
	f := Fetched{Next: 5, HighWater: 5}
	if err := f.read(records()); err != nil || f.Next != 5 {
		t.Errorf("at the end: next %d, %v", f.Next, err)
	}
}
