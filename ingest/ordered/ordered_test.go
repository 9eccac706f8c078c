package ordered

import (
	"slices"
	"testing"
	"time"

	"giantstream/ingest/decode"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

func TestRecordsAreDecodedAsTheyAreSent(t *testing.T) {
	row := make([]uint16, rows.OrderedDim)
	row[0], row[3], row[127] = 0x3f80, 0xbf00, 1 // 1, -0.5, and the least number there is
	d, err := decode.Attributes(Mapping(), mutation.Further+3, decode.Limits{RecordBytes: 1 << 20}, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMicro(1_700_000_000_000_000)
	for _, row := range [][]uint16{row, nil} {
		m := Record("p.ordered", "dürüm", 7, row, at)
		said, fault := d.Decode(decode.Record{Key: m.Key, Value: m.Value, Time: m.Time}, nil)
		if fault != nil || len(said) != 1 || said[0].ID != "dürüm" || said[0].Version.EventTime != at.UnixMicro() {
			t.Fatalf("decoded %v, fault %v", said, fault)
		}
		v := said[0].Vectors[0]
		generation, got, ok := (&rows.Vectors{Names: []string{v.Name}, Bits: []int32{8 * int32(v.Precision)},
			Values: [][]byte{[]byte(v.Data)}}).Ordered()
		if !ok || generation != 7 || !slices.Equal(got, row) {
			t.Errorf("row %v of generation %d, ok %v; sent %v of 7", got, generation, ok, row)
		}
	}
	said, fault := d.Decode(decode.Record{Key: []byte("a"), Time: at}, nil)
	if fault != nil || len(said) != 1 || !said[0].HasVectors || len(said[0].Vectors) != 0 {
		t.Errorf("a record without a value says %v, fault %v; it takes the row back", said, fault)
	}
}
