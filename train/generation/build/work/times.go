package work

import (
	"sync"
	"time"

	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// Times are the times at which this process has been at the stages of a build. They outlive a Build, which a worker
// drops with what it holds in memory.
type Times struct {
	mu   sync.Mutex
	span map[string]*span
}

type span struct{ begin, end time.Time }

// began notes that a task of a stage begins.
func (b *Build) began(stage string) {
	t := b.took
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span == nil {
		t.span = map[string]*span{}
	}
	if now := b.Now(); t.span[stage] == nil {
		t.span[stage] = &span{now, now}
	}
}

// ended notes that a task of a stage ends.
func (b *Build) ended(stage string) {
	b.took.mu.Lock()
	defer b.took.mu.Unlock()
	b.took.span[stage].end = b.Now()
}

// list returns how long each stage took in this process, in their order; those that it found done are near 0.
func (t *Times) list(p stages.Plan, now time.Time) (all []generation.StageTime) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range p.Stages() {
		took := generation.StageTime{Name: s.Name}
		if at := t.span[s.Name]; at != nil {
			if s.Name == stages.Finish {
				at.end = now
			}
			took.Seconds = at.end.Sub(at.begin).Seconds()
		}
		all = append(all, took)
	}
	return all
}

// StageTimes returns how long each stage took in this process.
func (b *Build) StageTimes(now time.Time) []generation.StageTime { return b.took.list(b.Plan, now) }
