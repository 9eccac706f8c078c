package e2e_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"

	"github.com/segmentio/kafka-go"
)

// reader is a consumer of the embeddings topic that switches generations as docs/format/embeddings.md, "Control
// records", tells it to. It looks at each record for what no consumer may see.
type reader struct {
	client *client.Client
	topic  string
	next   []int64 // by partition

	mu      sync.Mutex
	tables  map[int64]*table
	control []map[int]control // by partition and shard
	visible int64             // the generation of the table that answers, 0 before the first
	newest  map[string]placed // of each node, tombstones included, the record of the highest manifest
	seen    map[int64]int     // records by generation
	// switches are how often another table began to answer, records how many were read.
	switches, records int
	wrong             []string
}

// table holds the vectors of one generation, and the offset of its last record in each partition.
type table struct {
	rows map[string]placed
	last []int64
}

type placed struct {
	embedding.Record
	offset int64
}

type control struct {
	embedding.Completion
	offset int64
}

func newReader(c *client.Client, topic string, partitions int) *reader {
	r := &reader{client: c, topic: topic, next: make([]int64, partitions), tables: map[int64]*table{},
		newest: map[string]placed{}, seen: map[int64]int{}}
	for range partitions {
		r.control = append(r.control, map[int]control{})
	}
	return r
}

// catchUp reads to the end that the topic has now.
func (r *reader) catchUp(ctx context.Context) error {
	ends, err := r.client.EndOffsets(ctx, r.topic)
	if err != nil {
		return err
	}
	for partition, end := range ends[r.topic] {
		for m, err := range r.client.Range(ctx, r.topic, partition, r.next[partition], end) {
			if err == nil {
				err = r.take(partition, m)
			}
			if err != nil {
				return err
			}
			r.next[partition] = m.Offset + 1
		}
		r.next[partition] = max(r.next[partition], end)
	}
	return nil
}

// follow reads until ctx ends.
func (r *reader) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.catchUp(ctx); err != nil && ctx.Err() == nil {
			r.fail("read the embeddings topic: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// fail notes what is wrong; r.mu is held, or nobody else reads.
func (r *reader) fail(format string, args ...any) {
	if len(r.wrong) < 10 {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

func (r *reader) take(partition int, m kafka.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records++
	if embeddingtopic.IsControl(m) {
		c, ok, err := embeddingtopic.DecodeCompletion(m)
		if ok {
			r.control[partition][c.Shard] = control{c, m.Offset}
			r.settle()
		}
		return err
	}
	rec, err := embeddingtopic.Decode(m)
	if err != nil {
		return err
	}
	if before := r.newest[rec.NodeID]; rec.Seq < before.Seq {
		r.fail("partition %d, offset %d: %s goes back from manifest %d, offset %d, to %d", partition, m.Offset,
			rec.NodeID, before.Seq, before.offset, rec.Seq)
	}
	r.newest[rec.NodeID] = placed{rec, m.Offset}
	if rec.Deleted {
		for _, t := range r.tables {
			delete(t.rows, rec.NodeID)
		}
		return nil
	}
	r.seen[rec.Generation]++
	t := r.tables[rec.Generation]
	if t == nil {
		t = &table{rows: map[string]placed{}, last: make([]int64, len(r.next))}
		for i := range t.last {
			t.last[i] = -1
		}
		r.tables[rec.Generation] = t
	}
	t.rows[rec.NodeID], t.last[partition] = placed{rec, m.Offset}, m.Offset
	return nil
}

// settle answers from the generation that the newest control records of all shards name in all partitions.
func (r *reader) settle() {
	g := int64(0)
	first := make([]int64, len(r.control)) // of these records in each partition
	for partition, shards := range r.control {
		first[partition] = math.MaxInt64
		for _, c := range shards {
			if len(shards) < c.Shards || g != 0 && g != c.Generation {
				return
			}
			g, first[partition] = c.Generation, min(first[partition], c.offset)
		}
		if len(shards) == 0 {
			return
		}
	}
	if g != r.visible {
		if r.tables[g] == nil {
			r.fail("generation %d is said to be complete and has no record", g)
			return
		}
		r.checkSwitch(g)
		r.visible = g
		r.switches++
	}
	for other, t := range r.tables {
		replaced := other != g
		for partition, last := range t.last {
			replaced = replaced && last < first[partition]
		}
		if replaced {
			delete(r.tables, other)
		}
	}
}

// checkSwitch checks that readers who see the table of another generation from now on lose no node, and that none goes
// back in time: of what a shard had published before it said that it is done.
func (r *reader) checkSwitch(to int64) {
	r.checkOne(to)
	from := r.tables[r.visible]
	if from == nil {
		return
	}
	for id, old := range from.rows {
		partition := client.Partition([]byte(id), len(r.control))
		if old.offset > r.control[partition][old.Shard].offset {
			continue // the shard has gone on to another generation
		}
		now, ok := r.tables[to].rows[id]
		if !ok || now.Seq < old.Seq {
			r.fail("generation %d takes the place of %d: %s has %+v and had %+v", to, r.visible, id, now, old)
		}
	}
}

// checkOne checks that a table has vectors of its generation alone.
func (r *reader) checkOne(g int64) {
	for id, row := range r.tables[g].rows {
		if row.Generation != g {
			r.fail("the table of generation %d has %s of generation %d", g, id, row.Generation)
		}
	}
}

// sees says whether a record of a generation came after so many, and which generation answers.
func (r *reader) count(g int64) (records int, visible int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[g], r.visible
}
