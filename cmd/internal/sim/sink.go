package sim

import (
	"slices"
	"sync"
	"sync/atomic"

	"giantstream/sink/embedding"
)

// sinkTopic is a topic of embeddings.
type sinkTopic struct {
	// canaries: it gets generations that nobody has decided about.
	canaries bool
	mu       sync.Mutex
	records  []published
	// newestOf is the record of each node with the highest manifest, attributesOf that of its attributes.
	newestOf, attributesOf map[string]published
	running                map[*followerRun]bool
}

// published is a record of an embedding, or of attributes.
type published struct {
	embedding.Record
	attributes *embedding.Attributes // nil for an embedding
	run        *followerRun
}

// followerRun is one run of a follower.
type followerRun struct {
	process *process
	shard   int
	// beside are the runs of the same shard that had not ended when this one began, or began before it ended.
	beside    map[*followerRun]bool
	unsettled int // records, from the end of those that it sent, after which it has not written the cursor
	// unanswered: the store did not answer the last call.
	unanswered atomic.Bool
}

// begin notes that a run begins; end that it has ended.
func (t *sinkTopic) begin(p *process, shard int) *followerRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := &followerRun{process: p, shard: shard, beside: map[*followerRun]bool{}}
	for other := range t.running {
		if other.shard == shard && !other.process.isKilled() {
			run.beside[other], other.beside[run] = true, true
		}
	}
	if t.running == nil {
		t.running = map[*followerRun]bool{}
		t.newestOf, t.attributesOf = map[string]published{}, map[string]published{}
	}
	t.running[run] = true
	return run
}

func (t *sinkTopic) end(run *followerRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, run)
}

// forward checks that a node does not go back in time, unless two followers were at work at once: Kafka fences neither.
func (t *sinkTopic) forward(r published) {
	run, newestOf := r.run, t.newestOf
	if r.attributes != nil {
		newestOf = t.attributesOf
	}
	before, ok := newestOf[r.NodeID]
	if ok && r.Seq < before.Seq {
		if !run.beside[before.run] && (run != before.run || len(run.beside) == 0) {
			run.process.world.fail("%s goes back from manifest %d, which %s has published, to %d by %s", r.NodeID,
				before.Seq, before.run.process.name, r.Seq, run.process.name)
		}
		return
	}
	newestOf[r.NodeID] = r
}

// appendAttributes appends records of attributes.
func (t *sinkTopic) appendAttributes(run *followerRun, all []embedding.Attributes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range all {
		r := published{embedding.Record{NodeID: a.NodeID, Seq: a.Seq}, &a, run}
		if a.Attributes != "" { // a tombstone has no manifest
			t.forward(r)
		}
		t.records = append(t.records, r)
	}
	run.unsettled += len(all)
}

func (t *sinkTopic) append(run *followerRun, records []embedding.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		if promoted, decided := run.process.world.verdict(r.Generation); !t.canaries && !(promoted && decided) {
			run.process.world.fail("%s publishes generation %d of %s on the embeddings topic, and nobody has "+
				"promoted it", run.process.name, r.Generation, r.NodeID)
		}
		r.Vector = slices.Clone(r.Vector)
		t.forward(published{r, nil, run})
		t.records = append(t.records, published{r, nil, run})
	}
	run.unsettled += len(records)
}

// settled notes that the run has written the cursor, and so has accounted for all that it sent.
func (t *sinkTopic) settled(run *followerRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run.unsettled = 0
}

// last is the last record of a node, of its embedding or of its attributes. loose: its follower could not account for
// it. The process was killed before it looked at the cursor again, or the store did not answer.
type last struct {
	published
	loose bool
}

// newest returns the last records of each node.
func (t *sinkTopic) newest() (embeddings, attributes map[string]last) {
	t.mu.Lock()
	defer t.mu.Unlock()
	embeddings, attributes = map[string]last{}, map[string]last{}
	left := map[*followerRun]int{}
	for _, r := range slices.Backward(t.records) {
		left[r.run]++
		of := embeddings
		if r.attributes != nil {
			of = attributes
		}
		if _, ok := of[r.NodeID]; !ok {
			of[r.NodeID] = last{r, left[r.run] <= r.run.unsettled &&
				(r.run.process.isCrashed() || r.run.unanswered.Load())}
		}
	}
	return embeddings, attributes
}
