package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/oracle"
)

// watch checks every effect on the store at once.
type watch struct {
	w  *world
	mu sync.Mutex

	heads []*commitlog.Manifest
	rows  []map[string]rows.Row // newest committed, by shard
	// orders are the newest committed rows of orders, by shard and by key.
	orders []map[string]rows.Order
	// vectors are the newest committed rows of vectors, by shard and by key.
	vectors []map[string]oracle.NodeVectors
	named   map[string]bool // row objects that manifests name
	docs    []int64         // newest checkpoint document, by shard
	// digests are those of the manifests that were committed, and boundaries how far these may be removed, by shard.
	digests      []map[int64]string
	boundaries   []int64
	moves, fakes int // of boundaries; manifests created behind one

	// Of the lease: when each number's object was last written and whether it says "released", what each actor has read
	// of it last, the number under which each actor builds, and how many writes came late, by number.
	lease  map[string]leaseObject
	seen   map[string]leaseSeen
	holder map[string]int64
	top    int64
	stale  map[int64]int
}

type leaseObject struct {
	written  time.Time
	ttl      time.Duration
	released bool
}

type leaseSeen struct {
	key string
	leaseObject
	at time.Time
}

func newWatch(w *world) *watch {
	v := &watch{w: w, heads: make([]*commitlog.Manifest, w.plan.shards), docs: make([]int64, w.plan.shards),
		named: map[string]bool{}, lease: map[string]leaseObject{}, seen: map[string]leaseSeen{},
		holder: map[string]int64{}, stale: map[int64]int{}}
	v.boundaries = make([]int64, w.plan.shards)
	for range w.plan.shards {
		v.rows = append(v.rows, map[string]rows.Row{})
		v.orders = append(v.orders, map[string]rows.Order{})
		v.vectors = append(v.vectors, map[string]oracle.NodeVectors{})
		v.digests = append(v.digests, map[int64]string{})
	}
	return v
}

// kindOf takes a key apart: shards/<p>/<kind>/….
func kindOf(key string) (kind string, shard int) {
	if _, err := fmt.Sscanf(key, "shards/%d/", &shard); err != nil {
		kind, _, _ = strings.Cut(key, "/")
		return kind, 0
	}
	parts := strings.Split(key, "/")
	switch {
	case parts[2] == "state":
		return parts[3], shard // checkpoints, files
	case parts[2] == "compacted" && parts[3] == "rows":
		return "merged rows", shard
	}
	return parts[2], shard
}

// put comes before the effect of a Put.
func (v *watch) put(a *actor, key string, data []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch kind, _ := kindOf(key); kind {
	case "manifests", "checkpoints", "compacted", "folded", "boundary.json":
		v.w.fail("%s was written without a condition by %s", key, a.name)
	case "rows", "files", "merged rows":
		if v.exists(key) {
			v.w.fail("%s was written twice, now by %s", key, a.name)
		}
	case "generations":
		v.fenced(a, key, v.holder[a.name])
		if old, err := sink.ReadAll(context.Background(), &v.w.store, key); err == nil && string(old) != string(data) {
			v.w.fail("%s was replaced by other content by %s", key, a.name)
		}
	case "lease":
		v.leaseWritten(key, data)
	}
}

// replaced comes after the effect of a Replace.
func (v *watch) replaced(key string, data []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch kind, shard := kindOf(key); kind {
	case "lease":
		v.leaseWritten(key, data)
	case "boundary.json":
		v.boundary(shard, data)
	}
}

// boundary checks that a boundary ascends, does not reach the head or a checkpoint that is kept, and that blocks have
// all that it covers.
func (v *watch) boundary(shard int, data []byte) {
	var b commitlog.Boundary
	if err := json.Unmarshal(data, &b); err != nil {
		v.w.fail("boundary of shard %d: %v", shard, err)
		return
	}
	if b.Seq == v.boundaries[shard] {
		return // a retry
	}
	if head := v.heads[shard]; b.Seq < v.boundaries[shard] || head == nil || b.Seq >= head.Seq {
		v.w.fail("the boundary of shard %d goes from %d to %d, the head is %+v", shard, v.boundaries[shard],
			b.Seq, head)
	}
	for number := max(1, v.docs[shard]-1); number <= v.docs[shard]; number++ {
		c, err := checkpoint.Read(context.Background(), &v.w.store, shard, number)
		if err != nil || c.Seq <= b.Seq {
			v.w.fail("the boundary of shard %d goes to %d, checkpoint %d is %+v, %v", shard, b.Seq, number, c, err)
		}
	}
	for from := int64(1); from <= b.Seq; from += 64 {
		if key := fmt.Sprintf("shards/%d/compacted/1-%020d.json", shard, from); !v.exists(key) {
			v.w.fail("the boundary of shard %d goes to %d, and there is no %s", shard, b.Seq, key)
		}
	}
	v.boundaries[shard] = b.Seq
	v.moves++
}

// believed checks that a manifest that a worker takes for committed is the one that was committed under its number.
func (v *watch) believed(m *commitlog.Manifest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.digests[m.Shard][m.Seq] != m.Digest() {
		v.w.fail("%s believes that it has committed manifest %d of shard %d, which was committed by another", m.Writer,
			m.Seq, m.Shard)
	}
}

func (v *watch) exists(key string) bool {
	_, err := v.w.store.Open(context.Background(), key)
	return err == nil
}

// created comes after the effect of a Create that its actor asked for under a number of the lease. A retry that met its
// own first attempt comes here, too.
func (v *watch) created(a *actor, key string, data []byte, under int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch kind, shard := kindOf(key); kind {
	case "manifests":
		v.manifest(shard, key)
	case "checkpoints":
		v.checkpoint(shard, data)
	case "compacted":
		v.block(key, data)
	case "boundary.json":
		v.boundary(shard, data)
	case "generations":
		v.fenced(a, key, under)
	case "lease":
		v.leaseTaken(a, key, data)
	}
}

// manifest checks a commit: the right name, no gap, offsets that do not go back, each record below them counted once,
// objects that exist, and rows that are the graph of the records that the offsets cover.
func (v *watch) manifest(shard int, key string) {
	ctx := context.Background()
	data, err := sink.ReadAll(ctx, &v.w.store, key)
	if err != nil {
		v.w.fail("%s does not read: %v", key, err)
		return
	}
	m, err := commitlog.Decode(data, sink.PlaceOf(&v.w.store, key))
	if err != nil || m.Shard != shard || commitlog.ManifestKey(shard, m.Seq) != key {
		v.w.fail("%s holds %+v, %v", key, m, err)
		return
	}
	seq, last, head := m.Seq, map[string]int64{}, int64(0)
	if v.heads[shard] != nil {
		last, head = v.heads[shard].Next, v.heads[shard].Seq
	}
	if seq <= head {
		if seq <= v.boundaries[shard] {
			v.fakes++
		} else if v.digests[shard][seq] != m.Digest() {
			v.w.fail("%s is a second manifest %d of shard %d", key, seq, shard)
		}
		return // a retry, or a late one of a number that was removed
	}
	if seq != head+1 {
		v.w.fail("shard %d has manifest %d after %d", shard, seq, head)
	}
	for topic, offset := range last {
		if m.Next[topic] < offset {
			v.w.fail("%s: the offset of %s goes back from %d to %d", key, topic, offset, m.Next[topic])
		}
	}
	for topic, offset := range m.Next {
		if c := m.Counted[topic]; c.From != 0 || c.Gap(offset) != 0 || c.DeadLetters+c.Empty != 0 {
			v.w.fail("%s: %s was consumed up to %d, and was counted as %+v", key, topic, offset, c)
		}
	}
	v.heads[shard], v.digests[shard][seq] = m, m.Digest()
	inWindow := map[string]bool{}
	for _, o := range m.Objects {
		v.named[o.Key] = true
		if o.Table != "" {
			continue
		}
		for row, err := range rows.Nodes.Read(ctx, &v.w.store, o.Ref(), rows.ReadOptions{}) {
			if err != nil {
				v.w.fail("%s names %s: %v", key, o.Key, err)
				return
			}
			v.rows[shard][row.NodeID] = row
			inWindow[row.NodeID] = true
		}
	}
	v.readAttributes(ctx, shard, key, m.Objects, inWindow)
	v.readOrders(ctx, shard, m)
	v.readVectors(ctx, shard, m)
	if v.w.dice.hash("check", key)%4 == 0 {
		v.checkRows(shard)
	}
}

// readAttributes enters the attributes that a window has alone into the rows of their nodes, which are committed and
// live. inWindow are the nodes whose own rows the window has.
func (v *watch) readAttributes(ctx context.Context, shard int, key string, objects []commitlog.Object,
	inWindow map[string]bool) {
	for _, o := range objects {
		if o.Table != rows.NodeAttributes.Name {
			continue
		}
		for row, err := range rows.NodeAttributes.Read(ctx, &v.w.store, o.Ref(), rows.ReadOptions{}) {
			if err != nil {
				v.w.fail("%s names %s: %v", key, o.Key, err)
				return
			}
			node, known := v.rows[shard][row.NodeID]
			if !known || node.Deleted || inWindow[row.NodeID] {
				v.w.fail("%s has attributes of %s alone, whose row is there: %t, deleted: %t, in the window: %t", key,
					row.NodeID, known, node.Deleted, inWindow[row.NodeID])
			}
			node.Attributes, node.EventTime = row.Attributes, max(node.EventTime, row.EventTime)
			v.rows[shard][row.NodeID], inWindow[row.NodeID] = node, true
		}
	}
}

// readOrders enters the orders of a window. Each is there once, and manifests count those with lines.
func (v *watch) readOrders(ctx context.Context, shard int, m *commitlog.Manifest) {
	inWindow := map[string]bool{}
	for _, o := range m.Objects {
		if o.Table != rows.Orders.Name {
			continue
		}
		for row, err := range rows.Orders.Read(ctx, &v.w.store, o.Ref(), rows.ReadOptions{}) {
			key := rows.Orders.Key(&row)
			if err != nil || inWindow[key] {
				v.w.fail("manifest %d of shard %d names %s: order %s, there before: %t, %v", m.Seq, shard, o.Key,
					row.OrderID, inWindow[key], err)
				return
			}
			v.orders[shard][key], inWindow[key] = row, true
		}
	}
	orders, lines := int64(0), int64(0)
	for _, row := range counting(maps.Values(v.orders[shard]), m.OrderHorizon) {
		if !row.Deleted {
			orders, lines = orders+1, lines+int64(len(row.Items))
		}
	}
	if m.Orders != orders || m.Lines != lines {
		v.w.fail("manifest %d of shard %d counts %d orders of %d lines, its rows are %d of %d", m.Seq, shard, m.Orders,
			m.Lines, orders, lines)
	}
}

// checkRows compares the newest committed rows of a shard, and what it has counted, with the records below the head's
// offsets, and checks that the mirror of these records is durable.
func (v *watch) checkRows(shard int) {
	head := v.heads[shard]
	for topic, t := range v.w.topics.talliesOf(shard, head.Next, v.w.plan.keep) {
		if got := head.Counted[topic].Outcomes; !t.allows(got) {
			v.w.fail("shard %d at manifest %d counts %+v of %s below %d, want %+v and %d of either", shard, head.Seq,
				got, topic, head.Next[topic], t.sure, t.either)
		}
	}
	said := v.w.topics.below(shard, head.Next)
	orders, h := ordersOf(said), head.OrderHorizon
	v.checkClock(head, orders)
	if diff := differentOrders(counting(maps.Values(v.orders[shard]), h), orders.OrdersAfter(h)); diff != "" {
		v.w.fail("shard %d at manifest %d, offsets %v: %s", shard, head.Seq, head.Next, diff)
	}
	if diff := differentVectors(slices.Collect(maps.Values(v.vectors[shard])), vectorsOf(said)); diff != "" {
		v.w.fail("shard %d at manifest %d, offsets %v: %s", shard, head.Seq, head.Next, diff)
	}
	g := graphOf(said)
	if diff := difference(v.rows[shard], g.rows(g.mirrored)); diff != "" {
		v.w.fail("shard %d at manifest %d, offsets %v: %s", shard, head.Seq, head.Next, diff)
	}
	if !v.w.plan.undirected {
		return
	}
	for far := range v.w.plan.shards {
		mirrored := graphOf(v.w.topics.below(far, nil)).mirrored
		for l, s := range g.links {
			if l.kind.Directed || v.w.topics.shardOf(l.dst) != far {
				continue
			}
			if there, ok := mirrored[l]; !ok || s.newer(there) {
				v.w.fail("shard %d at manifest %d: %v of %v is committed, the mirror topic has %v", shard, head.Seq, s,
					l, there)
			}
		}
	}
}

// checkpoint checks that a document follows the newest one and that all of its files exist.
func (v *watch) checkpoint(shard int, data []byte) {
	var doc checkpoint.Document
	if err := json.Unmarshal(data, &doc); err != nil {
		v.w.fail("checkpoint of shard %d: %v", shard, err)
		return
	}
	newest := v.docs[shard]
	if doc.Number == newest || doc.Number < newest-1 {
		return // a retry, or a late one of a number that has been collected
	}
	if doc.Number != newest+1 {
		v.w.fail("shard %d has checkpoint %d after %d", shard, doc.Number, newest)
	}
	v.docs[shard] = doc.Number
	for _, f := range doc.Files {
		if !v.exists(f.Key) {
			v.w.fail("checkpoint %d of shard %d names %s, which is not there", doc.Number, shard, f.Key)
		}
	}
}

// block checks that all objects of a merged block exist.
func (v *watch) block(key string, data []byte) {
	var doc struct {
		Objects []commitlog.Object `json:"objects"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		v.w.fail("%s: %v", key, err)
	}
	for _, o := range doc.Objects {
		if !v.exists(o.Key) {
			v.w.fail("%s names %s, which is not there", key, o.Key)
		}
	}
}

// deleted comes before the effect of a Delete.
func (v *watch) deleted(a *actor, key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch kind, shard := kindOf(key); kind {
	case "rows":
		var seq int64
		_, _ = fmt.Sscanf(key, fmt.Sprintf("shards/%d/rows/%%d-", shard), &seq)
		block := fmt.Sprintf("shards/%d/compacted/1-%020d.json", shard, (seq-1)/64*64+1)
		switch {
		case v.heads[shard] == nil || seq > v.heads[shard].Seq:
			v.w.fail("%s above the head of shard %d was removed by %s", key, shard, a.name)
		case v.named[key] && !v.exists(block):
			v.w.fail("%s was removed by %s; its manifest names it, and it is not merged", key, a.name)
		}
	case "checkpoints":
		var number int64
		_, _ = fmt.Sscanf(key[strings.LastIndex(key, "/"):], "/%d.json", &number)
		if number >= v.docs[shard]-1 {
			v.w.fail("checkpoint %d of shard %d was removed by %s, the newest is %d", number, shard, a.name,
				v.docs[shard])
		}
	case "manifests":
		var seq int64
		_, _ = fmt.Sscanf(key[strings.LastIndex(key, "/"):], "/%d.json", &seq)
		if seq > v.boundaries[shard] {
			v.w.fail("%s was removed by %s, the boundary is at %d", key, a.name, v.boundaries[shard])
		}
	case "files":
		v.fileDeleted(a, shard, key)
	case "merged rows":
	case "lease":
		if key == leaseKey(v.top) {
			v.w.fail("the highest number of the lease, %d, was removed by %s", v.top, a.name)
		}
		delete(v.lease, key)
	default:
		v.w.fail("%s was removed by %s", key, a.name)
	}
}

// fileDeleted checks that none of the two newest checkpoints names a file.
func (v *watch) fileDeleted(a *actor, shard int, key string) {
	for number := max(1, v.docs[shard]-1); number <= v.docs[shard]; number++ {
		doc, err := checkpoint.Read(context.Background(), &v.w.store, shard, number)
		if err != nil {
			v.w.fail("checkpoint %d of shard %d: %v", number, shard, err)
			return
		}
		for _, f := range doc.Files {
			if f.Key == key {
				v.w.fail("%s was removed by %s; checkpoint %d of shard %d names it", key, a.name, number, shard)
			}
		}
	}
}

func leaseKey(number int64) string { return fmt.Sprintf("lease/refresh/%020d.json", number) }

// leaseWritten notes the state of a lease object.
func (v *watch) leaseWritten(key string, data []byte) {
	var r holding
	if err := json.Unmarshal(data, &r); err != nil {
		v.w.fail("%s: %v", key, err)
	}
	v.lease[key] = leaseObject{time.Now(), time.Duration(r.TTLMillis) * time.Millisecond, r.Released}
}

// holding is what the watch reads of a lease object.
type holding struct {
	Number    int64 `json:"number"`
	TTLMillis int64 `json:"ttl_ms"`
	Released  bool  `json:"released"`
}

// opened notes what an actor knows of the lease.
func (v *watch) opened(a *actor, key string) {
	if kind, _ := kindOf(key); kind != "lease" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[a.name] = leaseSeen{key, v.lease[key], time.Now()}
}

// leaseTaken checks that the number before was released, or had not changed for as long as its holder promised to
// change it, when the new holder looked.
func (v *watch) leaseTaken(a *actor, key string, data []byte) {
	var r holding
	_ = json.Unmarshal(data, &r)
	if _, again := v.lease[key]; again {
		return // a retry
	}
	v.leaseWritten(key, data)
	if r.Number <= v.top {
		return // a late one of a number that has been removed; its holder finds out
	}
	before := leaseKey(r.Number - 1)
	seen := v.seen[a.name]
	if r.Number > 1 && v.top > 0 && (seen.key != before || !seen.released && seen.at.Sub(seen.written) < seen.ttl) {
		v.w.fail("%s took number %d of the lease; it has seen %s, renewed %v before", a.name, r.Number, seen.key,
			seen.at.Sub(seen.written))
	}
	v.top = r.Number
}

// holds notes that an actor believes to hold a number of the lease.
func (v *watch) holds(a *actor, number int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.holder[a.name] = number
}

// heldBy returns the number under which an actor builds.
func (v *watch) heldBy(a *actor) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.holder[a.name]
}

// fenced checks that a holder that has lost the lease completes one write at most. A write counts for the number under
// which it was asked for: it may take effect when its actor holds another one.
func (v *watch) fenced(a *actor, key string, number int64) {
	if number >= v.top {
		return
	}
	if v.stale[number]++; v.stale[number] > 1 {
		v.w.fail("%s wrote %s under number %d of the lease, which is at %d, for the second time", a.name, key, number,
			v.top)
	}
}

// graph returns the committed rows of all shards, and the heads.
func (v *watch) graph() (all map[string]rows.Row, heads []*commitlog.Manifest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all = map[string]rows.Row{}
	for _, r := range v.rows {
		maps.Copy(all, r)
	}
	return all, append([]*commitlog.Manifest(nil), v.heads...)
}
