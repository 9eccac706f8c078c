package stream

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrCorruptState: the local state does not decode. Deleting the state
// directory rebuilds it from the log.
var ErrCorruptState = errors.New("corrupt shard state")

// assertion is a last-writer-wins register: who said last whether an edge is
// there. The zero value is "nobody said anything".
type assertion struct {
	set  bool
	live bool
	at   Version
}

// newer orders assertions by version. Two statements of one version come from
// one record; should they disagree, the live one wins, so that the order
// stays total and the outcome independent of the order of arrival.
func (a assertion) newer(b assertion) bool {
	if !a.set || !b.set {
		return a.set && !b.set
	}
	if c := a.at.Compare(b.at); c != 0 {
		return c > 0
	}
	return a.live && !b.live
}

// adjacency is what is known about the link of an owner to a far end: what
// the owner asserted, by family (the rank of the topic: 0 node records with
// inlined edges, 1 edge records), and what the far end asserted, as mirrored.
type adjacency struct {
	out [families]assertion
	in  assertion
}

// families of assertions: one per Version.Rank.
const families = 2

// effective is the owner's word: the newest assertion of any family.
func (a *adjacency) effective() assertion {
	if a.out[1].newer(a.out[0]) {
		return a.out[1]
	}
	return a.out[0]
}

// label says whether the far end is a label of the owner.
func (a *adjacency) label() bool { return a.in.live || a.effective().live }

// eventTime is the newest event time of the link, live or taken back.
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

// head is the small, often read part of a node.
type head struct {
	// known: some PutNode was applied, be it superseded. Nodes that are
	// only somebody's far end are not known and have no row.
	known bool
	// stated: at and deleted hold the winning PutNode or DeleteNode.
	stated  bool
	deleted bool
	at      Version
	// replaced holds per family the newest version that replaced the whole
	// edge list of this source (SetEdges, ClearEdges, PutNode.HasEdges).
	// Older assertions are dead on arrival.
	replaced [families]mark
}

type mark struct {
	set bool
	at  Version
}

// exists says whether the node is there: put, and not deleted since.
func (h *head) exists() bool { return h.stated && !h.deleted }

// Bits of the first byte of a head.
const (
	headKnown = 1 << iota
	headStated
	headDeleted
	headReplaced0
	headReplaced1
)

func (h *head) encode(buf []byte) []byte {
	var flags byte
	if h.known {
		flags |= headKnown
	}
	if h.stated {
		flags |= headStated
	}
	if h.deleted {
		flags |= headDeleted
	}
	for f, m := range h.replaced {
		if m.set {
			flags |= headReplaced0 << f
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

func decodeHead(data []byte) (head, error) {
	var h head
	d := decoder{data: data}
	flags := d.byte()
	h.known = flags&headKnown != 0
	h.stated = flags&headStated != 0
	h.deleted = flags&headDeleted != 0
	if h.stated {
		h.at = d.version()
	}
	for f := range h.replaced {
		if flags&(headReplaced0<<f) != 0 {
			h.replaced[f] = mark{set: true, at: d.version()}
		}
	}
	if err := d.finish("head"); err != nil {
		return head{}, err
	}
	return h, nil
}

// encode writes two flag bits per assertion (set, live), then the versions of
// those that are set.
func (a *adjacency) encode(buf []byte) []byte {
	all := [...]assertion{a.out[0], a.out[1], a.in}
	var flags byte
	for i, s := range all {
		if s.set {
			flags |= 1 << (2 * i)
		}
		if s.live {
			flags |= 2 << (2 * i)
		}
	}
	buf = append(buf[:0], flags)
	for _, s := range all {
		if s.set {
			buf = appendVersion(buf, s.at)
		}
	}
	return buf
}

func decodeAdjacency(data []byte) (adjacency, error) {
	var a adjacency
	d := decoder{data: data}
	flags := d.byte()
	for i, s := range []*assertion{&a.out[0], &a.out[1], &a.in} {
		if flags&(1<<(2*i)) != 0 {
			*s = assertion{set: true, live: flags&(2<<(2*i)) != 0, at: d.version()}
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

func decodeText(data []byte) (text, class string, err error) {
	n, k := binary.Uvarint(data)
	if k <= 0 || n > uint64(len(data)-k) {
		return "", "", fmt.Errorf("%w: text of %d bytes", ErrCorruptState, len(data))
	}
	return string(data[k+int(n):]), string(data[k : k+int(n)]), nil
}

// meta is the state's own account: whose it is and how far it has come.
type meta struct {
	Format     int    `json:"format"`
	Pipeline   string `json:"pipeline"`
	Shard      int    `json:"shard"`
	Shards     int    `json:"shards"`
	Undirected bool   `json:"undirected"`
	// Applied holds per topic the offset up to which every record is in
	// the state. It never decreases.
	Applied map[string]int64 `json:"applied"`
	// Committed is the last manifest whose rows this state has seen off,
	// and Writer the one who wrote it; 0 when there is none.
	Committed int64  `json:"committed"`
	Writer    string `json:"writer"`
	// Nodes that exist and live assertions owned by this shard.
	Nodes int64 `json:"nodes"`
	Edges int64 `json:"edges"`
}

func (m *meta) encode() ([]byte, error) { return json.Marshal(m) }

func decodeMeta(data []byte) (meta, error) {
	var m meta
	if err := json.Unmarshal(data, &m); err != nil {
		return meta{}, fmt.Errorf("%w: meta: %w", ErrCorruptState, err)
	}
	return m, nil
}

func appendVersion(buf []byte, v Version) []byte {
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

func (d *decoder) version() Version {
	return Version{EventTime: d.varint(), Rank: d.byte(), Offset: d.varint()}
}

func (d *decoder) finish(what string) error {
	if d.bad || len(d.data) != 0 {
		return fmt.Errorf("%w: %s value does not decode", ErrCorruptState, what)
	}
	return nil
}
