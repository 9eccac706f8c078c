package shard

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// pending is the part of a state that is not in its files: the facts and marks of the open window.
// They are written when the window is committed (state.commitWindow), or earlier if memory is short
// (state.spill). Node headers that were read meanwhile are kept here, too.
type pending struct {
	db *pebble.DB
	// headers and links rule out keys that are neither in the files nor here; nil before state.ready.
	headers, links *engine.KeyFilter

	nodes   map[string]*pendingNode
	orders  registers[orderID, order]
	vectors registers[vectorsID, nodeVectors]
	memory  *windowMemory
	bytes   atomic.Int64 // of the shared memory; atomic for release

	// changed are the nodes that were touched since the last write, the first sorted of them in
	// ascending order.
	changed []*pendingNode
	sorted  int
	block   []pendingNode  // room for the next nodes
	facts   []pendingFacts // and for what is pending of them
	// kept is how many of the bytes are of nodes that were written in the open window and stay, so that
	// they need not be looked up again.
	kept atomic.Int64

	// spilled: the files may hold marks of the open window, too. dropped: also of nodes that are not
	// among nodes.
	spilled, dropped bool

	key []byte // scratch
}

// pendingNode is the pending part of one node. All of it may differ from the files, except a header
// that was only read.
type pendingNode struct {
	id          string
	header      nodeHeader
	headerRead  bool
	headerSet   bool
	mark        byte // 0: none
	markWritten bool
	kept        bool          // see pending.kept
	facts       *pendingFacts // nil for a node that was not touched since it was written
}

// pendingFacts is what is forgotten of a node when it is written.
type pendingFacts struct {
	textSet     bool // the text below is newer than the files; a node that does not exist has none
	linksBefore bool // the files may have links of the node; set with the first link
	text, class string
	links       pendingLinks
	attributes  []pendingStated // by ascending input
}

// pendingBlock is how many nodes are allocated at once.
const pendingBlock = 64

// windowMemory is the memory for open windows that the shards of a process share.
type windowMemory struct {
	limit int64
	used  atomic.Int64
	kept  atomic.Int64 // of used: see pending.kept
}

const (
	// windowMemoryBytes bounds the open windows of all shards of a process. Beyond half of it
	// shards commit early; beyond all of it they write to their states before the commit.
	windowMemoryBytes = 48 << 20
	// A shard that has less than this leaves making room to the others.
	windowShareBytes = 1 << 20

	// 1/keptShare of the limit is left to nodes that are not written.
	keptShare = 4

	// Rough sizes of a node, what is forgotten of it, and a link, with their places in maps and slices.
	pendingNodeBytes   = 168
	pendingFactsBytes  = 112
	pendingLinkBytes   = 192
	pendingStatedBytes = 80

	pendingOrderBytes     = 280
	pendingOrderLineBytes = 64
	pendingVectorsBytes   = 280
)

// overHalf reports whether this shard should commit its window early, overLimit whether it must
// spill.
func (p *pending) overHalf() bool  { return p.above(p.memory.limit / 2) }
func (p *pending) overLimit() bool { return p.above(p.memory.limit) }

func (p *pending) above(limit int64) bool {
	return p.memory.used.Load() > limit && p.bytes.Load()-p.kept.Load() >= min(windowShareBytes, limit)
}

func (p *pending) take(n int) {
	p.bytes.Add(int64(n))
	p.memory.used.Add(int64(n))
}

// forget drops everything.
func (p *pending) forget() {
	clear(p.nodes)
	clear(p.orders.all)
	clear(p.vectors.all)
	p.block = nil
	p.release()
	p.unchanged()
}

// unchanged says that nothing is to be written.
func (p *pending) unchanged() {
	clear(p.changed)
	p.changed, p.sorted = p.changed[:0], 0
}

// keep forgets what a write in the open window has put into the files, except headers and marks, if
// there is room for them. It reports whether there is.
func (p *pending) keep() bool {
	bytes := int64(0)
	for _, n := range p.changed {
		if !n.kept {
			bytes += pendingNodeBytes + int64(len(n.id))
		}
	}
	if p.memory.kept.Add(bytes) > p.memory.limit-p.memory.limit/keptShare {
		p.memory.kept.Add(-bytes)
		return false
	}
	for _, n := range p.changed {
		n.facts, n.headerSet, n.markWritten, n.kept = nil, false, n.mark != 0, true
	}
	clear(p.orders.all)
	clear(p.vectors.all)
	rest := p.kept.Add(bytes)
	p.memory.used.Add(rest - p.bytes.Swap(rest))
	p.unchanged()
	return true
}

// release gives the shared memory back, also when a goroutine that was left behind has the rest.
func (p *pending) release() {
	p.memory.used.Add(-p.bytes.Swap(0))
	p.memory.kept.Add(-p.kept.Swap(0))
}

// node returns what is pending of a node that is about to be read or changed.
func (p *pending) node(id string) *pendingNode {
	n := p.nodes[id]
	if n == nil {
		if len(p.block) == 0 {
			p.block = make([]pendingNode, pendingBlock)
		}
		n, p.block = &p.block[0], p.block[1:]
		n.id = id
		if p.nodes == nil {
			p.nodes = map[string]*pendingNode{}
		}
		p.nodes[id] = n
		p.take(pendingNodeBytes + len(id))
	}
	if n.facts == nil {
		if len(p.facts) == 0 {
			p.facts = make([]pendingFacts, pendingBlock)
		}
		n.facts, p.facts = &p.facts[0], p.facts[1:]
		p.changed = append(p.changed, n)
		p.take(pendingFactsBytes)
	}
	return n
}

func (p *pending) header(n *pendingNode) (nodeHeader, error) {
	if n.headerRead {
		return n.header, nil
	}
	if p.key = headerKey(p.key, n.id); p.headers.MayHave(p.key) {
		err := lookUp(p.db, p.key, func(data []byte) (err error) {
			n.header, err = decodeHeader(data)
			return err
		})
		if err != nil {
			return nodeHeader{}, err
		}
	}
	n.headerRead = true
	return n.header, nil
}

func (p *pending) setHeader(n *pendingNode, h *nodeHeader) {
	if !n.headerSet {
		p.key = headerKey(p.key, n.id)
		p.headers.Add(p.key)
	}
	n.header, n.headerRead, n.headerSet = *h, true, true
}

// setText sets the node's text and class; deleteText removes them.
func (p *pending) setText(n *pendingNode, text, class string) {
	f := n.facts
	p.take(len(text) + len(class) - len(f.text) - len(f.class))
	f.text, f.class, f.textSet = text, class, true
}

func (p *pending) deleteText(n *pendingNode) { p.setText(n, "", "") }

// sameText reports whether a node that exists has this text and class.
func (p *pending) sameText(n *pendingNode, text, class string) (same bool, err error) {
	if f := n.facts; f.textSet {
		return f.text == text && f.class == class, nil
	}
	p.key = textKey(p.key, n.id)
	err = lookUp(p.db, p.key, func(data []byte) error {
		t, c, err := decodeText(data)
		same = t == text && c == class
		return err
	})
	return same, err
}

// mark gives a node a mark of the open window, and reports whether a row of it is due that was not before.
func (p *pending) mark(window int64, n *pendingNode, kind byte) (due bool, err error) {
	if n.mark == 0 && p.dropped {
		p.key = dirtyKey(p.key, window, n.id)
		err := lookUp(p.db, p.key, func(data []byte) error {
			if len(data) == 1 {
				n.mark, n.markWritten = data[0], true
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	if !outweighs(kind, n.mark) {
		return false, nil
	}
	due = kind != markSuspect && (n.mark == 0 || n.mark == markSuspect)
	n.mark, n.markWritten = kind, false
	return due, nil
}

// inOrder returns what was touched since the last write, in ascending order.
func (p *pending) inOrder() []*pendingNode {
	if p.sorted < len(p.changed) {
		slices.SortFunc(p.changed, func(a, b *pendingNode) int { return strings.Compare(a.id, b.id) })
		p.sorted = len(p.changed)
	}
	return p.changed
}

// marked returns the nodes with a mark of some kinds that is not yet written, in ascending order.
func (p *pending) marked(kinds string) (due []*pendingNode) {
	for _, n := range p.inOrder() {
		if n.mark != 0 && strings.IndexByte(kinds, n.mark) >= 0 && !n.markWritten {
			due = append(due, n)
		}
	}
	return due
}

const (
	entryBytes   = 12 // at most, of an entry of a batch beside key and value
	versionBytes = 14 // mostly, of an encoded version
)

// batchBytes estimates the size of a batch of all that is pending.
func (p *pending) batchBytes() int {
	size := 4 << 10 // the meta
	for _, n := range p.changed {
		f := n.facts
		// Header, mark and text.
		size += 3*(entryBytes+markKeyPrefix+len(n.id)) + 3*versionBytes + len(f.text) + len(f.class)
		for i := range f.links.all {
			if l := &f.links.all[i]; l.set {
				size += entryBytes + len(n.id) + len(l.other) + 2*versionBytes
			}
		}
		for i := range f.attributes {
			size += entryBytes + len(n.id) + versionBytes + len(f.attributes[i].object)
		}
	}
	for k, o := range p.orders.all {
		size += 2*(entryBytes+markKeyPrefix+len(k.id)) + 2*versionBytes
		for i := range o.value.lines {
			size += 4 + len(o.value.lines[i].item)
		}
	}
	for k, v := range p.vectors.all {
		size += 2*(entryBytes+markKeyPrefix+len(k.id)) + versionBytes + mutation.VectorBytes(v.value.all)
	}
	return size
}

// write puts what may differ from the files into a batch, in key order, which is fastest for the
// engine. window is that of the marks; 0 leaves the marks out.
func (p *pending) write(b *pebble.Batch, window int64) error {
	nodes := p.inOrder()
	if err := writeLinks(b, nodes); err != nil {
		return err
	}
	if window != 0 {
		if err := errors.Join(writeMarks(b, nodes, window), p.orders.writeMarks(b, window),
			p.vectors.writeMarks(b, window)); err != nil {
			return err
		}
	}
	return errors.Join(writeHeaders(b, nodes), p.orders.write(b), p.vectors.write(b), writeAttributes(b, nodes),
		writeTexts(b, nodes))
}

func writeLinks(b *pebble.Batch, nodes []*pendingNode) error {
	var key, value []byte
	for _, n := range nodes {
		links := n.facts.links.inOrder()
		for i := range links {
			if l := &links[i]; l.set {
				key, value = adjacencyKey(key, n.id, l.other), l.encode(value)
				if err := b.Set(key, value, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeMarks(b *pebble.Batch, nodes []*pendingNode, window int64) error {
	var key, value []byte
	for _, n := range nodes {
		if n.mark == 0 || n.markWritten {
			continue
		}
		key, value = dirtyKey(key, window, n.id), append(value[:0], n.mark)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	return nil
}

func writeHeaders(b *pebble.Batch, nodes []*pendingNode) error {
	var key, value []byte
	for _, n := range nodes {
		if !n.headerSet {
			continue
		}
		key, value = headerKey(key, n.id), n.header.encode(value)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	return nil
}

func writeAttributes(b *pebble.Batch, nodes []*pendingNode) error {
	var key, value []byte
	for _, n := range nodes {
		for i := range n.facts.attributes {
			if s := &n.facts.attributes[i]; s.set {
				key, value = attributeKey(key, n.id, s.input), s.encode(value)
				if err := b.Set(key, value, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeTexts writes the texts of nodes that exist, and removes those of the others.
func writeTexts(b *pebble.Batch, nodes []*pendingNode) (err error) {
	var key []byte
	for _, n := range nodes {
		f := n.facts
		if !f.textSet {
			continue
		}
		if n.header.exists() {
			op := b.SetDeferred(textKeyBytes(n.id), textBytes(f.text, f.class)) // texts are most of a batch
			textKey(op.Key, n.id)
			encodeText(op.Value, f.text, f.class)
			err = op.Finish()
		} else {
			key = textKey(key, n.id)
			err = b.Delete(key, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pendingLink is a link of a pendingNode.
type pendingLink struct {
	other string // the far end
	adjacency
	set bool // newer than the files; else it was only read
}

// pendingLinks are links of one owner by far end. Most owners have few, so they lie in one slice: a
// sorted part, and behind it those that came since, in the order in which they came.
type pendingLinks struct {
	all    []pendingLink
	sorted int
	// index has the places of those that are not sorted, once there are more than linearLinks.
	index map[string]int
}

// linearLinks is how many links are searched one by one.
const linearLinks = 16

// find returns the link to a far end, or nil.
func (l *pendingLinks) find(other string) *pendingLink {
	if l.index != nil {
		if i, ok := l.index[other]; ok {
			return &l.all[i]
		}
	} else {
		for i := l.sorted; i < len(l.all); i++ {
			if l.all[i].other == other {
				return &l.all[i]
			}
		}
	}
	i, ok := slices.BinarySearchFunc(l.all[:l.sorted], other,
		func(known pendingLink, other string) int { return strings.Compare(known.other, other) })
	if !ok {
		return nil
	}
	return &l.all[i]
}

// add adds the link to a far end that has none.
func (l *pendingLinks) add(other string, a *adjacency) *pendingLink {
	at := len(l.all)
	l.all = append(l.all, pendingLink{other: other, adjacency: *a})
	if l.index == nil && at-l.sorted >= linearLinks {
		l.index = make(map[string]int, 2*linearLinks)
		for i := l.sorted; i < at; i++ {
			l.index[l.all[i].other] = i
		}
	}
	if l.index != nil {
		l.index[other] = at
	}
	return &l.all[at]
}

// inOrder returns all links in ascending order. What is added later is not among them.
func (l *pendingLinks) inOrder() []pendingLink {
	if l.sorted < len(l.all) {
		slices.SortFunc(l.all, func(a, b pendingLink) int { return strings.Compare(a.other, b.other) })
		l.sorted, l.index = len(l.all), nil
	}
	return l.all
}

// link returns the link of an owner to a far end, until the owner has another one.
func (p *pending) link(owner *pendingNode, other string) (*pendingLink, error) {
	if known := owner.facts.links.find(other); known != nil {
		return known, nil
	}
	if f := owner.facts; len(f.links.all) == 0 {
		p.key = adjacencyPrefix(p.key, owner.id)
		f.linksBefore = p.links.Add(p.key)
	}
	var a adjacency
	p.key = adjacencyKey(p.key, owner.id, other)
	if p.links.Add(p.key) {
		err := lookUp(p.db, p.key, func(data []byte) (err error) {
			a, err = decodeAdjacency(data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return p.addLink(owner, other, &a), nil
}

// hasLinks reports whether the files may have links of an owner, of which n is pending or nil.
func (p *pending) hasLinks(prefix []byte, n *pendingNode) bool {
	if n != nil && n.facts != nil && len(n.facts.links.all) > 0 {
		return n.facts.linksBefore
	}
	return p.links == nil || p.links.MayHave(prefix)
}

// readLink is link where the files' adjacency is known to be a.
func (p *pending) readLink(owner *pendingNode, other string, a *adjacency) *pendingLink {
	owner.facts.linksBefore = true
	if known := owner.facts.links.find(other); known != nil {
		return known
	}
	return p.addLink(owner, other, a)
}

func (p *pending) addLink(owner *pendingNode, other string, a *adjacency) *pendingLink {
	p.take(pendingLinkBytes + len(other))
	return owner.facts.links.add(other, a)
}

// eachLink calls f with every link of an owner, in ascending order of the far ends. f may change
// the link that it is given.
func (p *pending) eachLink(owner *pendingNode, f func(other string, a adjacency) error) (err error) {
	prefix := adjacencyPrefix(nil, owner.id)
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return engine.Failure(err)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = engine.Failure(cerr)
		}
	}()
	return eachLink(it, prefix, owner, f)
}

// eachLink merges the links that an iterator has under a prefix, at or after its position, with the
// pending links of n, which are newer. Without an iterator or n there are none.
func eachLink(it *pebble.Iterator, prefix []byte, n *pendingNode, f func(other string, a adjacency) error) error {
	var newer []pendingLink
	if n != nil && n.facts != nil {
		newer = n.facts.links.inOrder() // f may add links, which come after these
	}
	for ok := it != nil && it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		other := it.Key()[len(prefix):]
		for ; len(newer) > 0 && newer[0].other < string(other); newer = newer[1:] {
			if err := f(newer[0].other, newer[0].adjacency); err != nil {
				return err
			}
		}
		if len(newer) > 0 && newer[0].other == string(other) {
			continue // it is newer, and the next one
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return engine.Failure(err)
		}
		a, err := decodeAdjacency(data)
		if err != nil {
			return engine.Failure(err)
		}
		if err := f(string(other), a); err != nil {
			return err
		}
	}
	if it != nil {
		if err := it.Error(); err != nil {
			return engine.Failure(err)
		}
	}
	for i := range newer {
		if err := f(newer[i].other, newer[i].adjacency); err != nil {
			return err
		}
	}
	return nil
}
