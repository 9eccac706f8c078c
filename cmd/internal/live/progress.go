package live

import (
	"sync"
	"time"

	"giantstream/internal/ambient"
)

// Stage is how far long work is.
type Stage struct {
	Stage   string  `json:"stage"`
	Done    int64   `json:"done"`
	Total   int64   `json:"total,omitempty"` // 0 if it is not known
	Seconds float64 `json:"seconds"`
	// Building: the stage is one of a generation's build.
	Building bool `json:"building"`
}

// Progress notes the stage of long work, and passes it on.
type Progress struct {
	next ambient.Progress

	mu    sync.Mutex
	stage Stage
	began time.Time
}

// Stage implements ambient.Progress.
func (p *Progress) Stage(name string, total int64) {
	p.mu.Lock()
	p.stage, p.began = Stage{Stage: name, Total: total}, time.Now()
	p.mu.Unlock()
	p.next.Stage(name, total)
}

// Add implements ambient.Progress.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	p.stage.Done += n
	p.mu.Unlock()
	p.next.Add(n)
}

// Note passes words on, see ambient.Note.
func (p *Progress) Note(words string) { ambient.Note(p.next, words) }

// Done ends the last stage.
func (p *Progress) Done() {
	p.mu.Lock()
	p.stage = Stage{}
	p.mu.Unlock()
	ambient.Done(p.next)
}

// currentStage returns the stage under way, nil for none.
func (p *Progress) currentStage() *Stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage.Stage == "" {
		return nil
	}
	now := p.stage
	now.Seconds = time.Since(p.began).Seconds()
	return &now
}
