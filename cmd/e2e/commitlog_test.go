package e2e_test

import (
	"testing"

	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/sink/storetest"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// checkLog checks what must hold of every commit log: sequence numbers without gaps, offsets that
// never go back and end at the topics' ends, objects named once that are what their manifest says.
func checkLog(t *testing.T, dir string) {
	t.Helper()
	withPlace(t, dir, func(p place) { p.checkLog(t) })
}

func (p place) checkLog(t *testing.T) {
	t.Helper()
	store := p.store
	id, err := commitlog.LoadIdentity(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	next, inputs := make([]map[string]int64, id.Shards), make([]map[string]commitlog.Input, id.Shards)
	var heads []*commitlog.Manifest
	for shard := range id.Shards {
		next[shard] = map[string]int64{}
		seq := int64(0)
		var head *commitlog.Manifest
		for m, err := range commitlog.Manifests(t.Context(), store, shard, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; m.Seq != seq || m.Shard != shard {
				t.Errorf("shard %d: manifest %d of shard %d, want %d", shard, m.Seq, m.Shard, seq)
			}
			for topic, offset := range next[shard] {
				if now, ok := m.Next[topic]; !ok || now < offset {
					t.Errorf("shard %d, manifest %d: %s goes back from %d to %d", shard, seq, topic, offset, now)
				}
			}
			next[shard], inputs[shard], head = m.Next, m.Inputs, m
			for topic, offset := range m.Next {
				if c := m.Counted[topic]; c.Gap(offset) < 0 {
					t.Errorf("shard %d, manifest %d: %s is consumed up to %d, and was counted as %+v", shard, seq, topic,
						offset, c)
				}
			}
			last := map[string]string{} // by table
			for _, o := range m.Objects {
				if named[o.Key] {
					t.Errorf("%s is named twice", o.Key)
				}
				named[o.Key] = true
				last[o.Table] = checkObject(t, store, m, o, last[o.Table], id.Shards)
			}
		}
		heads = append(heads, head)
	}
	p.checkConservation(t, heads)
	for topic := range next[0] {
		ends, err := p.client.EndOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for shard, end := range ends[topic] {
			if at := next[shard][topic] - inputs[shard][topic].Base; at != end {
				t.Errorf("%s/%d ends at %d, the commit log at %d", topic, shard, end, at)
			}
		}
	}
}

// checkConservation compares how many records have an outcome in the newest manifests with the topics. Where a topic
// was created again or has deleted records, it cannot be known.
func (p place) checkConservation(t *testing.T, heads []*commitlog.Manifest) {
	t.Helper()
	for shard, head := range heads {
		if head == nil {
			continue
		}
		for topic, next := range head.Next {
			counted := head.Counted[topic]
			first, err := p.client.FirstOffsets(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			if head.Inputs[topic].Base != 0 || first[topic][shard] > counted.From {
				continue
			}
			records := int64(0)
			for _, err := range p.client.Range(t.Context(), topic, shard, counted.From, next) {
				if err != nil {
					t.Fatal(err)
				}
				records++
			}
			if counted.Sum() != records {
				t.Errorf("%s/%d has %d records from offset %d to %d; they were counted as %+v", topic, shard, records,
					counted.From, next, counted)
			}
		}
	}
}

// counted is what became of the records of some topics.
func (p place) counted(t *testing.T, topics ...string) (all mutation.Outcomes) {
	t.Helper()
	id, err := commitlog.LoadIdentity(t.Context(), p.store)
	if err != nil {
		t.Fatal(err)
	}
	for shard := range id.Shards {
		head, err := commitlog.Head(t.Context(), p.store, shard)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range topics {
			if head != nil {
				all = all.Plus(head.Counted[topic].Total())
			}
		}
	}
	return all
}

// checkObject compares an object with the manifest that names it, and returns the id of its last
// row; ids ascend throughout a manifest's rows of a table.
func checkObject(t *testing.T, store sink.Store, m *commitlog.Manifest, o commitlog.Object, last string,
	shards int) string {
	t.Helper()
	data, err := sink.ReadAll(t.Context(), store, o.Key)
	if err != nil {
		t.Errorf("shard %d, manifest %d: %v", m.Shard, m.Seq, err)
		return last
	}
	if sum := sink.ChecksumOf(data); int64(len(data)) != o.Bytes || sum != o.Checksum {
		t.Errorf("%s has %d bytes with checksum %v, its manifest says %d and %v", o.Key, len(data), sum, o.Bytes, o.Checksum)
	}
	ids := rowIDs(t, store, o)
	for _, id := range ids {
		if id <= last {
			t.Errorf("%s: %s follows on %s", o.Key, id, last)
		}
		if p := client.Partition([]byte(id), shards); p != m.Shard {
			t.Errorf("%s: %s belongs to shard %d", o.Key, id, p)
		}
		last = id
	}
	if int64(len(ids)) != o.Rows {
		t.Errorf("%s has %d rows, its manifest says %d", o.Key, len(ids), o.Rows)
	}
	return last
}

// rowIDs returns the ids of the nodes or orders in an object's rows, in order.
func rowIDs(t *testing.T, store sink.Store, o commitlog.Object) []string {
	t.Helper()
	switch o.Table {
	case rows.Orders.Name:
		return idsIn(t, store, o, rows.Orders, func(r rows.Order) string { return r.OrderID })
	case rows.NodeAttributes.Name:
		return idsIn(t, store, o, rows.NodeAttributes, func(r rows.Attributes) string { return r.NodeID })
	}
	return idsIn(t, store, o, rows.Nodes, func(r rows.Row) string { return r.NodeID })
}

func idsIn[R any](t *testing.T, store sink.Store, o commitlog.Object, table *rows.Table[R],
	idOf func(R) string) (ids []string) {
	t.Helper()
	for r, err := range table.Read(t.Context(), store, storetest.Ref(t, store, o.Key),
		rows.ReadOptions{Columns: table.KeyColumns}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, idOf(r))
	}
	return ids
}
