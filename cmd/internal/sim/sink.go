package sim

import (
	"slices"
	"sync"
	"sync/atomic"

	"giantstream/sink/embedding"
)

// sinkTopic is the embeddings topic.
type sinkTopic struct {
	mu      sync.Mutex
	records []published
}

type published struct {
	embedding.Record
	run *followerRun
}

// followerRun is one run of a follower.
type followerRun struct {
	process   *process
	unsettled int // records, from the end of those that it sent, after which it has not written the cursor
	// unanswered: the store did not answer the last call.
	unanswered atomic.Bool
}

func (t *sinkTopic) append(run *followerRun, records []embedding.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		r.Vector = slices.Clone(r.Vector)
		t.records = append(t.records, published{r, run})
	}
	run.unsettled += len(records)
}

// settled notes that the run has written the cursor, and so has accounted for all that it sent.
func (t *sinkTopic) settled(run *followerRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run.unsettled = 0
}

// newest returns the last record of each node, and whether its follower could not account for it: the process was
// killed before it looked at the cursor again, or the store did not answer.
func (t *sinkTopic) newest() (last map[string]embedding.Record, loose map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, loose = map[string]embedding.Record{}, map[string]bool{}
	left := map[*followerRun]int{}
	for _, r := range slices.Backward(t.records) {
		left[r.run]++
		if _, ok := last[r.NodeID]; !ok {
			last[r.NodeID], loose[r.NodeID] = r.Record,
				left[r.run] <= r.run.unsettled && (r.run.process.isCrashed() || r.run.unanswered.Load())
		}
	}
	return last, loose
}
