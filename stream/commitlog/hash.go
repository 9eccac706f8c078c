package commitlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"giantstream/sink/rows"
)

// GraphHasher computes a fingerprint of a graph from the newest row of each node. The order of the
// rows does not matter, so the fingerprint is the same for any number of shards, any windows and
// any restarts. Two runs over the same records agree exactly if their graphs are the same.
//
// The fingerprint is the sum, in four lanes of 64 bits, of the SHA-256 of each live node's id,
// text, class, event time and labels, of its attributes if it has any, and of the kinds and weights that its links
// have, with their times. Where orders are added, their ids, inputs, times, kinds, customers, items, quantities and
// event times count as well, and the times of items where these differ. Where vectors are added, their nodes, inputs,
// names and numbers do.
type GraphHasher struct {
	sum  [4]uint64
	hash hash.Hash
	buf  []byte
}

// NewGraphHasher returns a hasher of the empty graph.
func NewGraphHasher() *GraphHasher { return &GraphHasher{hash: sha256.New()} }

// Add adds a node, which must be added once. Rows of deleted nodes are left out.
func (g *GraphHasher) Add(r *rows.Row) {
	if r.Deleted {
		return
	}
	g.hash.Reset()
	g.write(r.NodeID)
	g.write(r.Text)
	g.write(r.Class)
	g.number(uint64(r.EventTime))
	g.number(uint64(len(r.Labels)))
	for _, l := range r.Labels {
		g.write(l)
	}
	if r.Attributes != "" {
		g.write(r.Attributes)
	}
	if len(r.LinkEnds) > 0 {
		g.number(linksDomain)
	}
	for i, end := range r.LinkEnds {
		g.write(end)
		g.write(r.LinkKinds[i])
		g.number(uint64(math.Float32bits(r.LinkWeights[i])))
		g.number(uint64(r.LinkTimes[i]))
	}
	g.end()
}

// AddOrder adds an order, which must be added once. Rows of deleted orders are left out.
func (g *GraphHasher) AddOrder(r *rows.Order) {
	if r.Deleted {
		return
	}
	g.hash.Reset()
	g.number(orderDomain)
	g.number(uint64(r.Input))
	g.write(r.OrderID)
	g.write(r.Kind)
	g.write(r.Customer)
	g.number(uint64(r.Time))
	g.number(uint64(r.EventTime))
	for i, item := range r.Items {
		g.write(item)
		g.number(uint64(math.Float32bits(r.Quantities[i])))
	}
	for _, t := range r.Times {
		g.number(uint64(t))
	}
	g.end()
}

// AddVectors adds the vectors that an input states of a node, which must be added once. When they were stated does not
// count: a statement that repeats them moves no row.
func (g *GraphHasher) AddVectors(r *rows.Vectors) {
	if len(r.Names) == 0 {
		return
	}
	g.hash.Reset()
	g.number(vectorsDomain)
	g.number(uint64(r.Input))
	g.write(r.NodeID)
	for i, name := range r.Names {
		g.write(name)
		g.number(uint64(r.Bits[i]))
		g.write(string(r.Values[i]))
	}
	g.end()
}

// orderDomain begins what is hashed of an order, and vectorsDomain what is of vectors. No node begins with either: it
// would be the length of an id.
const (
	orderDomain   = math.MaxUint64
	vectorsDomain = math.MaxUint64 - 1
)

// linksDomain begins what is hashed of links that have a weight. No attributes begin with it: it would be their length.
const linksDomain = math.MaxUint64

func (g *GraphHasher) end() {
	g.buf = g.hash.Sum(g.buf[:0])
	for i := range g.sum {
		g.sum[i] += binary.BigEndian.Uint64(g.buf[8*i:])
	}
}

// write hashes a string after its length, so that no two rows give the same bytes.
func (g *GraphHasher) write(s string) {
	g.number(uint64(len(s)))
	g.buf = append(g.buf[:0], s...)
	_, _ = g.hash.Write(g.buf) // a hash never fails
}

func (g *GraphHasher) number(n uint64) {
	g.buf = binary.BigEndian.AppendUint64(g.buf[:0], n)
	_, _ = g.hash.Write(g.buf)
}

// Sum returns the fingerprint so far in hexadecimal.
func (g *GraphHasher) Sum() string {
	var out []byte
	for _, lane := range g.sum {
		out = binary.BigEndian.AppendUint64(out, lane)
	}
	return hex.EncodeToString(out)
}

// Merge adds the nodes of another fingerprint, given its Sum. The two must have no node in common.
func (g *GraphHasher) Merge(sum string) error {
	lanes, err := hex.DecodeString(sum)
	if err != nil || len(lanes) != 8*len(g.sum) {
		return fmt.Errorf("%q is no fingerprint of a graph", sum)
	}
	for i := range g.sum {
		g.sum[i] += binary.BigEndian.Uint64(lanes[8*i:])
	}
	return nil
}
