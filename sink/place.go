package sink

import (
	"sync/atomic"

	"giantstream/internal/seal"
)

// Membership is which pipeline a store is of. Implementations of Store embed it. The zero value does not know yet.
type Membership struct{ id atomic.Pointer[string] }

// Pipeline implements Store.
func (m *Membership) Pipeline() string {
	if id := m.id.Load(); id != nil {
		return *id
	}
	return ""
}

// SetPipeline implements Store.
func (m *Membership) SetPipeline(id string) { m.id.Store(&id) }

// PlaceOf returns the place that documents under a key are sealed for.
func PlaceOf(s Store, key string) seal.Place { return seal.Place{Pipeline: s.Pipeline(), Key: key} }
