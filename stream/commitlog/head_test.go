package commitlog

import (
	"errors"
	"strings"
	"testing"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog/checkpoint"
)

// Whatever was written after a manifest is evidence of it. A log that ends before is no shorter log.
func TestHeadOfALogThatLostItsEnd(t *testing.T) {
	const head = 70
	put := func(t *testing.T, store sink.Store, key string, doc any) {
		t.Helper()
		data, err := seal.JSON(doc, sink.PlaceOf(store, key))
		if err == nil {
			err = sink.PutBytes(t.Context(), store, key, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	document := func(number, seq int64) checkpoint.Document {
		return checkpoint.Document{Format: 2, Number: number, Seq: seq, Writer: "w", State: 1,
			Files: []checkpoint.File{{Name: "MANIFEST-1", Key: checkpoint.FileKey(0, number, "w", 1), Bytes: 1,
				SHA256: strings.Repeat("00", 32)}}}
	}
	block := func(level int, from int64) compaction {
		return compaction{Format: 2, Level: level, From: from, To: from + blockSize(level) - 1, Skipped: true}
	}
	for _, test := range []struct {
		name string
		key  string
		doc  any
		lost bool
	}{
		{"cursor at the head", publishedKey(0), Published{Seq: head}, false},
		{"cursor beyond", publishedKey(0), Published{Seq: head + 1}, true},
		{"checkpoint at the head", checkpoint.Key(0, 7), document(7, head), false},
		{"checkpoint beyond", checkpoint.Key(0, 7), document(7, head+1), true},
		{"block before the head", compactionKey(0, 1, 1), block(1, 1), false},
		{"block beyond", compactionKey(0, 1, 65), block(1, 65), true},
		{"large block beyond", compactionKey(0, 2, 1), block(2, 1), true},
		{"cursor of another shard", publishedKey(1), Published{Seq: head + 1}, false},
		{"a hint that cannot be read", publishedKey(0), Published{Seq: -1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &memstore.Store{}
			for seq := int64(1); seq <= head; seq++ {
				commitWindow(t, store, seq)
			}
			put(t, store, test.key, test.doc)
			m, err := Head(t.Context(), store, 0)
			if test.lost {
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), test.key) {
					t.Errorf("%v, want one that names %s", err, test.key)
				}
			} else if err != nil || m.Seq != head {
				t.Errorf("%+v, %v", m, err)
			}
			if _, err := CurrentCut(t.Context(), store, 1); (err != nil) != test.lost {
				t.Errorf("cut: %v", err)
			}
		})
	}
}
