package generation

import (
	"sync/atomic"
	"time"

	"giantstream/sink/rows"
)

// Served is the generation that a process serves. It is safe for concurrent use, and generations are switched by
// storing one pointer: a row is built with one generation or the next.
type Served struct {
	current, canary atomic.Pointer[Generation]
	look            atomic.Pointer[look]
}

// look is a look for what is to be served.
type look struct {
	began      time.Time
	passedOver int64
}

// Current returns the generation being served, nil before the first.
func (s *Served) Current() *Generation { return s.current.Load() }

// Serve makes a generation current.
func (s *Served) Serve(g *Generation) { s.current.Store(g) }

// Number returns the current generation's number, 0 when there is none.
func (s *Served) Number() int64 {
	if g := s.Current(); g != nil {
		return g.Doc.Generation
	}
	return 0
}

// Featurize fills in the features and targets of a row by the current generation, if there is one.
func (s *Served) Featurize(row *rows.Row) error {
	if g := s.Current(); g != nil {
		return g.Featurize(row)
	}
	return nil
}

// Cut returns the newest manifest of a shard that the current generation covers, 0 for none.
func (s *Served) Cut(shard int) int64 {
	if g := s.Current(); g != nil {
		return g.Doc.Cut[shard]
	}
	return 0
}

// SetCanary sets the generation that the canary topic has in place of the current one, nil for none.
func (s *Served) SetCanary(g *Generation) { s.canary.Store(g) }

// CanaryOrCurrent returns the canary, or the current generation if there is none or it was promoted just now.
func (s *Served) CanaryOrCurrent() *Generation {
	current, c := s.Current(), s.canary.Load()
	if current != nil && c != nil && c.Doc.Generation > current.Doc.Generation {
		return c
	}
	return current
}

// Looked notes, once what is to be served is served, when the look for it began. passedOver is the newest generation
// above it that is complete or damaged and not to be served, 0 for none.
func (s *Served) Looked(began time.Time, passedOver int64) { s.look.Store(&look{began, passedOver}) }

// LastLook returns what Looked noted last. Call it before Current: then the generation is not older than the look.
func (s *Served) LastLook() (began time.Time, passedOver int64) {
	if l := s.look.Load(); l != nil {
		return l.began, l.passedOver
	}
	return time.Time{}, 0
}
