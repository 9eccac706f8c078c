package client

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// marker is the control batch that ends a producer's transaction.
func marker(offset, producer int64, commit bool) []byte {
	key := []byte{0, 0, 0, 0} // version, type
	if commit {
		key[3] = 1
	}
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, 0) // version, coordinator's epoch
	return testBatch{base: offset, last: offset, control: true, producer: producer, count: 1,
		records: encodeRecord(0, key, value)}.encode()
}

// Random logs of interleaved transactions, read from every offset: a broker that was asked for
// committed records sends the batches from the offset on and the aborted transactions among them.
func TestAbortedRecordsAreNotRead(t *testing.T) {
	type transaction struct {
		producer, first, marker int64
		offsets                 []int64
		committed               bool
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var (
			batches [][]byte
			last    []int64 // of each batch
			end     int64
			open    = map[int64]*transaction{}
			all     []*transaction
			want    []int64
		)
		add := func(batch []byte, n int64) {
			batches, end = append(batches, batch), end+n
			last = append(last, end-1)
		}
		finish := func(tx *transaction) {
			tx.marker, tx.committed = end, rng.IntN(2) == 0
			add(marker(end, tx.producer, tx.committed), 1)
			if tx.committed {
				want = append(want, tx.offsets...)
			}
			delete(open, tx.producer)
		}
		for range 60 {
			n := int64(1 + rng.IntN(3))
			offsets := make([]int64, n)
			for i := range offsets {
				offsets[i] = end + int64(i)
			}
			producer := int64(rng.IntN(4)) // 0 is outside of transactions
			tx := open[producer]
			switch {
			case producer == 0:
				want = append(want, offsets...)
			case tx != nil && rng.IntN(3) == 0:
				finish(tx)
				continue
			case tx == nil:
				tx = &transaction{producer: producer, first: end}
				all, open[producer] = append(all, tx), tx
				fallthrough
			default:
				tx.offsets = append(tx.offsets, offsets...)
			}
			add(testBatch{base: end, last: end + n - 1, offsets: offsets, producer: producer}.encode(), n)
		}
		for producer := range int64(4) {
			if tx := open[producer]; tx != nil {
				finish(tx)
			}
		}
		slices.Sort(want)
		for from := int64(0); from < end; from += 1 + rng.Int64N(4) {
			a := answerOf(from, end)
			var aborted []abortedTransaction
			for i, b := range batches {
				if last[i] >= from {
					a.rest = append(a.rest, b...)
				}
			}
			for _, tx := range all {
				if !tx.committed && tx.marker >= from {
					aborted = append(aborted, abortedTransaction{tx.producer, tx.first})
				}
			}
			rng.Shuffle(len(aborted), func(i, j int) { aborted[i], aborted[j] = aborted[j], aborted[i] })
			a.transactions = newTransactions(aborted)
			f, err := a.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at, _ := slices.BinarySearch(want, from)
			if got := offsets(f); !slices.Equal(got, want[at:]) || f.Next != end {
				t.Fatalf("seed %d from %d: read %v and then from %d, want %v and %d", seed, from, got, f.Next, want[at:], end)
			}
		}
	}
}

// Neither a marker of a kind that brokers may invent nor a damaged one ends an aborted transaction.
func TestOnlyAbortMarkersEndAbortedTransactions(t *testing.T) {
	for name, records := range map[string][]byte{
		"commit":     encodeRecord(0, []byte{0, 0, 0, 1}, nil),
		"other kind": encodeRecord(0, []byte{0, 0, 0, 9}, nil),
		"short key":  encodeRecord(0, []byte{0, 0}, nil),
		"no key":     encodeRecord(0, nil, nil),
		"nothing":    nil,
	} {
		odd := testBatch{base: 1, last: 1, control: true, producer: 5, count: 1, records: records}.encode()
		a := answerOf(0, 4,
			testBatch{base: 0, last: 0, offsets: []int64{0}, producer: 5}.encode(), odd,
			testBatch{base: 2, last: 2, offsets: []int64{2}, producer: 5}.encode(),
			testBatch{base: 3, last: 3, offsets: []int64{3}, producer: 6}.encode())
		a.transactions = newTransactions([]abortedTransaction{{5, 0}})
		f, err := a.read(t.Context())
		if err != nil || fmt.Sprint(offsets(f)) != "[3]" || f.Next != 4 {
			t.Errorf("%s: %v, next %d, %v", name, offsets(f), f.Next, err)
		}
	}
}
