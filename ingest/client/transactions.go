package client

import (
	"cmp"
	"slices"

	"github.com/segmentio/kafka-go/compress"
)

// abortedTransaction is an entry of a broker's answer: a producer's transaction that was aborted, and
// the offset of its first record.
type abortedTransaction struct{ producer, first int64 }

// transactions tells which batches of an answer belong to aborted transactions. The broker sends no
// record of an open transaction, and names every aborted one that has records in the answer, also if
// it began before (https://kafka.apache.org/documentation/#impl_offsettracking, KIP-98). Batches must
// be shown in the order of their offsets.
type transactions struct {
	aborted []abortedTransaction // those that begin later, ascending
	open    map[int64]bool       // producers within an aborted transaction
}

func newTransactions(aborted []abortedTransaction) *transactions {
	slices.SortFunc(aborted, func(a, b abortedTransaction) int { return cmp.Compare(a.first, b.first) })
	return &transactions{aborted: aborted, open: map[int64]bool{}}
}

// drops reports whether a batch has nothing for a reader: it was aborted, or has the marker that ends
// a transaction.
func (t *transactions) drops(b *batch, attributes int16, producer int64, records []byte) bool {
	for len(t.aborted) > 0 && t.aborted[0].first <= b.last {
		t.open[t.aborted[0].producer] = true
		t.aborted = t.aborted[1:]
	}
	if attributes&controlFlag != 0 {
		if isAbort(attributes, records) {
			delete(t.open, producer)
		}
		return true
	}
	return attributes&transactionFlag != 0 && t.open[producer]
}

// isAbort reports whether a control batch says that a transaction was aborted
// (https://kafka.apache.org/documentation/#controlbatch).
func isAbort(attributes int16, records []byte) bool {
	if compress.Compression(attributes&codecMask) != compress.None {
		return false // brokers do not compress markers
	}
	c := cursor{b: records}
	c.varint()                         // length
	c.int8()                           // attributes
	c.varint()                         // timestamp
	c.varint()                         // offset
	c = cursor{b: c.bytes(c.varint())} // key
	version, kind := c.int16(), c.int16()
	return !c.bad && version >= 0 && kind == 0
}
