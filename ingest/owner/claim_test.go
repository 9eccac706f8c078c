package owner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever compaction removes, and however late the claims arrive, the owner is the same to each that reads the log.
func TestCompactionDoesNotChangeTheOwner(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var log []Claim
		seen := make([]*Owner, 4) // by pipeline, as it read the log last
		for range 30 {
			p := rnd.IntN(len(seen))
			id := fmt.Sprint(p)
			if rnd.IntN(3) > 0 {
				seen[p] = ownerBy(log)
				continue
			}
			// It claims by what it has read, which may be old. An owner claims nothing.
			next := Claim{ID: id, Number: 1}
			if o := seen[p]; o != nil {
				next.Number, next.From = o.Number+1, o.ID
			}
			if next.From == id {
				continue
			}
			before := ownerBy(log)
			log = append(log, next)
			seen[p] = ownerBy(log)
			// An owner that has seen its claim hold is the owner until a claim that follows it.
			if after := seen[p]; before != nil && after.ID != before.ID && after.Number != before.Number+1 {
				t.Fatalf("seed %d: %s takes the place of %s by %+v", seed, after.ID, before.ID, log)
			}

			// Compaction keeps the newest claim of each pipeline, and some more.
			compacted := slices.Clone(log)
			for i := len(compacted) - 1; i >= 0; i-- {
				later := slices.ContainsFunc(compacted[i+1:], func(c Claim) bool { return c.ID == compacted[i].ID })
				if later && rnd.IntN(2) == 0 {
					compacted = slices.Delete(compacted, i, i+1)
				}
			}
			if want, got := ownerBy(log), ownerBy(compacted); want.ID != got.ID || want.Number != got.Number {
				t.Fatalf("seed %d: the owner is %s by %+v, and %s by what compaction leaves, %+v", seed, want.ID, log,
					got.ID, compacted)
			}
		}
	}
}
