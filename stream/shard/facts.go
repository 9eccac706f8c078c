package shard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// errCorruptState: the local state does not decode. Deleting the state directory rebuilds the state
// from the topics.
var errCorruptState = fmt.Errorf("%w: corrupt shard state", engine.ErrDamaged)

// assertion is a last-writer-wins register: the newest statement on whether an edge is there. The
// zero value stands for no statement.
type assertion struct {
	set  bool
	live bool
	// weight is stated by live assertions alone.
	weight mutation.Weight
	at     mutation.Version
}

// newer orders assertions by version. Two statements of one version come from one record. If they
// disagree the live one wins, and of two live ones that of the larger weight, so that the order is
// total and the outcome does not depend on the order of arrival.
func (a assertion) newer(b assertion) bool {
	if !a.set || !b.set {
		return a.set && !b.set
	}
	if c := a.at.Compare(b.at); c != 0 {
		return c > 0
	}
	if a.live != b.live {
		return a.live
	}
	return a.weight > b.weight
}

// repeats reports whether two statements say the same as of the same event time.
func (a assertion) repeats(b assertion) bool {
	return a.set && b.set && a.live == b.live && a.weight == b.weight && a.at.EventTime == b.at.EventTime
}

// adjacency is the link of an owner to a far end: the owner's assertion per family, and the far end's
// assertion, as mirrored.
type adjacency struct {
	out [families]assertion
	in  assertion
}

// families of assertions: what node records say, what edge records say, and what the records of further topics of
// edges say, of which one alone states links of a kind.
const families = 3

// family of the assertions that a record of an input makes, which is the rank of their versions.
func family(rank uint8) uint8 { return min(rank, families-1) }

// effective is the owner's newest assertion of any family.
func (a *adjacency) effective() assertion {
	best := a.out[0]
	for _, said := range a.out[1:] {
		if said.newer(best) {
			best = said
		}
	}
	return best
}

// label reports whether the far end is a label of the owner.
func (a *adjacency) label() bool { return a.in.live || a.effective().live }

// stated returns the live assertion that says the link's weight and time, the zero value for none. It is
// the newer one of both ends'. The two ends' offsets are of different partitions, so versions can be
// equal; then the larger weight counts, at both ends.
func (a *adjacency) stated() assertion {
	out := a.effective()
	if a.in.live && (!out.live || a.in.newer(out)) {
		return a.in
	}
	if out.live {
		return out
	}
	return assertion{}
}

// shownLink is what the owner's row says of a link, besides its time as the newest statement about the
// node.
type shownLink struct {
	label  bool
	weight mutation.Weight
	time   int64
}

func (a *adjacency) shown() shownLink {
	s := a.stated()
	return shownLink{s.live, s.weight, s.at.EventTime}
}

// eventTime is the newest event time of the link, live or retracted.
func (a *adjacency) eventTime() (t int64, ok bool) {
	out := a.effective()
	switch {
	case out.set && a.in.set:
		return max(out.at.EventTime, a.in.at.EventTime), true
	case out.set:
		return out.at.EventTime, true
	}
	return a.in.at.EventTime, a.in.set
}

// nodeHeader is the small, often read part of a node.
type nodeHeader struct {
	// known: some PutNode was applied, superseded or not. A node that is only the far end of edges
	// is not known and has no row.
	known bool
	// stated: at and deleted hold the winning PutNode or DeleteNode.
	stated  bool
	deleted bool
	at      mutation.Version
	// replaced holds per family the newest version that replaced the whole edge list of this source
	// (SetEdges, ClearEdges, PutNode.HasEdges). Older assertions are dead on arrival.
	replaced [families]mark
}

type mark struct {
	set bool
	at  mutation.Version
}

// exists reports whether the node was put and not deleted since.
func (h *nodeHeader) exists() bool { return h.stated && !h.deleted }

// Bits of the first byte of a header.
const (
	flagKnown = 1 << iota
	flagStated
	flagDeleted
	flagReplaced0 // and one for each further family
)

func (h *nodeHeader) encode(buf []byte) []byte {
	var flags byte
	if h.known {
		flags |= flagKnown
	}
	if h.stated {
		flags |= flagStated
	}
	if h.deleted {
		flags |= flagDeleted
	}
	for f, m := range h.replaced {
		if m.set {
			flags |= flagReplaced0 << f
		}
	}
	buf = append(buf[:0], flags)
	if h.stated {
		buf = appendVersion(buf, h.at)
	}
	for _, m := range h.replaced {
		if m.set {
			buf = appendVersion(buf, m.at)
		}
	}
	return buf
}

func decodeHeader(data []byte) (nodeHeader, error) {
	var h nodeHeader
	d := decoder{data: data}
	flags := d.byte()
	h.known = flags&flagKnown != 0
	h.stated = flags&flagStated != 0
	h.deleted = flags&flagDeleted != 0
	if h.stated {
		h.at = d.version()
	}
	for f := range h.replaced {
		if flags&(flagReplaced0<<f) != 0 {
			h.replaced[f] = mark{set: true, at: d.version()}
		}
	}
	if err := d.finish("node header"); err != nil {
		return nodeHeader{}, err
	}
	return h, nil
}

// Further flags of an adjacency.
const (
	// flagWeights: the weights of the live assertions follow, 4 bytes each.
	flagWeights = 1 << 6
	// flagFurther: a byte with the flags of the third family follows the first byte.
	flagFurther = 1 << 7
)

// assertions are those of an adjacency in the order of their flags.
func (a *adjacency) assertions() [families + 1]*assertion {
	return [...]*assertion{&a.out[0], &a.out[1], &a.in, &a.out[2]}
}

// encode writes two flag bits per assertion (set, live), and then the versions of the assertions
// that are set. Weights follow if any is stated.
func (a *adjacency) encode(buf []byte) []byte {
	all := a.assertions()
	var flags uint16
	for i, s := range all {
		at := 2 * i
		if i == len(all)-1 {
			at = 8 // of the second byte
		}
		if s.weight.Stated() {
			flags |= flagWeights
		}
		if s.set {
			flags |= 1 << at
		}
		if s.live {
			flags |= 2 << at
		}
	}
	buf = buf[:0]
	if further := byte(flags >> 8); further != 0 {
		buf = append(buf, byte(flags)|flagFurther, further)
	} else {
		buf = append(buf, byte(flags))
	}
	for _, s := range all {
		if s.set {
			buf = appendVersion(buf, s.at)
		}
	}
	if flags&flagWeights == 0 {
		return buf
	}
	for _, s := range all {
		if s.live {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(s.weight))
		}
	}
	return buf
}

func decodeAdjacency(data []byte) (adjacency, error) {
	var a adjacency
	d := decoder{data: data}
	flags := uint16(d.byte())
	if flags&flagFurther != 0 {
		flags |= uint16(d.byte()) << 8
	}
	all := a.assertions()
	for i, s := range all {
		at := 2 * i
		if i == len(all)-1 {
			at = 8
		}
		if flags&(1<<at) != 0 {
			*s = assertion{set: true, live: flags&(2<<at) != 0, at: d.version()}
		}
	}
	if flags&flagWeights != 0 {
		for _, s := range all {
			if s.live {
				s.weight = mutation.Weight(d.uint32())
				d.bad = d.bad || !s.weight.Valid()
			}
		}
	}
	if err := d.finish("adjacency"); err != nil {
		return adjacency{}, err
	}
	return a, nil
}

func encodeText(buf []byte, text, class string) []byte {
	buf = binary.AppendUvarint(buf[:0], uint64(len(class)))
	buf = append(buf, class...)
	return append(buf, text...)
}

// textBytes is the length of encodeText.
func textBytes(text, class string) int {
	return uvarintBytes(uint64(len(class))) + len(class) + len(text)
}

func uvarintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func decodeText(data []byte) (text, class string, err error) {
	n, k := binary.Uvarint(data)
	if k <= 0 || n > uint64(len(data)-k) {
		return "", "", fmt.Errorf("%w: text of %d bytes", errCorruptState, len(data))
	}
	return string(data[k+int(n):]), string(data[k : k+int(n)]), nil
}

// meta says which shard the state belongs to and what it holds.
type meta struct {
	Format     int    `json:"format"`
	Pipeline   string `json:"pipeline"`
	Shard      int    `json:"shard"`
	Shards     int    `json:"shards"`
	Undirected bool   `json:"undirected"`
	// Applied holds, per topic, the offset below which every record is in the state. It never
	// decreases.
	Applied map[string]int64 `json:"applied"`
	// Committed is the last manifest that this state has seen, 0 if there is none, and Writer the
	// session that wrote that manifest.
	Committed int64  `json:"committed"`
	Writer    string `json:"writer"`
	// Nodes that exist, and live edges owned by this shard.
	Nodes int64 `json:"nodes"`
	Edges int64 `json:"edges"`
	// PlainLinks: no link has had a kind since the state began. States of older releases do not say so.
	PlainLinks bool `json:"plain_links,omitempty"`
	// Orders that have lines, and their lines.
	Orders int64 `json:"orders,omitempty"`
	Lines  int64 `json:"order_lines,omitempty"`
	// Vectors that are stated, by name. States of older releases do not have it, and are counted when they are opened.
	Vectors vectorCounts `json:"vectors"`
	// OrderClock and OrderHorizon are as in a manifest, or those of the head where that is later. OrdersSwept is the
	// horizon up to which all orders were looked at for what has expired.
	OrderClock   int64        `json:"order_clock,omitempty"`
	OrderHorizon rows.Horizon `json:"order_horizon,omitempty"`
	OrdersSwept  rows.Horizon `json:"orders_swept,omitempty"`
	// Lost holds what no manifest says to be lost yet.
	Lost []commitlog.Lost `json:"lost,omitempty"`
	// Counted says, by topic, what became of the statements below Applied, or below the head's offset
	// where that is higher.
	Counted map[string]commitlog.Counted `json:"statements,omitempty"`
}

func (m *meta) encode() ([]byte, error) { return json.Marshal(m) }

func decodeMeta(data []byte) (meta, error) {
	var m meta
	if err := json.Unmarshal(data, &m); err != nil {
		return meta{}, fmt.Errorf("%w: meta: %w", errCorruptState, err)
	}
	return m, nil
}

func appendVersion(buf []byte, v mutation.Version) []byte {
	buf = binary.AppendVarint(buf, v.EventTime)
	buf = append(buf, v.Rank)
	return binary.AppendVarint(buf, v.Offset)
}

// decoder reads values and remembers the first failure.
type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.bad = true
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.data)
	if n <= 0 {
		d.bad, d.data = true, nil
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.bad, d.data = true, nil
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, nil
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes(d.uvarint())) }

func (d *decoder) uint32() uint32 {
	b := d.bytes(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (d *decoder) version() mutation.Version {
	return mutation.Version{EventTime: d.varint(), Rank: d.byte(), Offset: d.varint()}
}

func (d *decoder) finish(what string) error {
	if d.bad || len(d.data) != 0 {
		return fmt.Errorf("%w: %s value does not decode", errCorruptState, what)
	}
	return nil
}
