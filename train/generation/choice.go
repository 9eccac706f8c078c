package generation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

const (
	choiceKey    = root + "choice.json"
	choiceFormat = 1
	// decisionsKept bounds the decisions that a choice remembers.
	decisionsKept = 100
)

// Choice is generations/choice.json: which generation people want served. Without one, it is the newest that is ready.
// Format page: docs/format/generation.md.
type Choice struct {
	Format int `json:"format"`
	// Pinned is served whatever is built, 0 for none.
	Pinned int64 `json:"pinned,omitempty"`
	// Withdrawn generations are not served, ascending.
	Withdrawn []int64 `json:"withdrawn,omitempty"`
	// Promoted generations are served although the quality gate has refused them, or although they began as canaries,
	// ascending.
	Promoted []int64 `json:"promoted,omitempty"`
	// Decisions are the newest decisions, oldest first.
	Decisions []Decision `json:"decisions,omitempty"`

	stored []byte // nil if there was none
}

// Decision is something that people have decided about generations.
type Decision struct {
	At     time.Time `json:"at"`
	Action string    `json:"action"` // "promote", "rollback", "pin" or "unpin"
	// Generation is the one decided about; From was served before and To after the decision.
	Generation int64  `json:"generation,omitempty"`
	From       int64  `json:"from,omitempty"`
	To         int64  `json:"to"`
	Reason     string `json:"reason,omitempty"`
}

// ErrChoice: what was asked for cannot be done.
var ErrChoice = errors.New("not possible")

// ErrChoiceDamaged: the choice cannot be read.
var ErrChoiceDamaged = errors.New("the choice of generations is damaged")

// LoadChoice reads the choice, the zero value if nobody has chosen.
func LoadChoice(ctx context.Context, store sink.Store) (*Choice, error) {
	data, err := sink.ReadAll(ctx, store, choiceKey)
	if errors.Is(err, sink.ErrNotFound) {
		return &Choice{Format: choiceFormat}, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Choice{}
	body, sealed, err := seal.Open(data, sink.PlaceOf(store, choiceKey))
	if err == nil && !sealed {
		err = errors.New("it has no checksum")
	}
	if err == nil {
		err = json.Unmarshal(body, c)
	}
	if err != nil {
		// Without the choice, a generation that people have withdrawn would be served again.
		return nil, fmt.Errorf("%w: %s, so that nobody knows which generation is to be served; restore it, or "+
			"remove it to have the newest one served: %w", ErrChoiceDamaged, choiceKey, err)
	}
	if c.Format != choiceFormat {
		return nil, fmt.Errorf("%s has format %d, this build reads %d: upgrade giantstream", choiceKey, c.Format,
			choiceFormat)
	}
	c.stored = data
	return c, nil
}

// allows says whether a complete generation that is not damaged may be served.
func (c *Choice) allows(d *Doc) bool {
	return (c.Pinned == 0 || c.Pinned == d.Generation) && c.isReady(d)
}

// isReady says whether a generation could be served, were no other one pinned.
func (c *Choice) isReady(d *Doc) bool {
	return !c.isWithdrawn(d) && (d.Status == Ready && !d.Canary || c.isPromoted(d))
}

// isCanary says whether only the canary topic gets a generation, as long as no newer one is ready.
func (c *Choice) isCanary(d *Doc) bool {
	return d.Status == Ready && d.Canary && c.Pinned == 0 && !c.isWithdrawn(d) && !c.isPromoted(d)
}

func (c *Choice) isWithdrawn(d *Doc) bool { return slices.Contains(c.Withdrawn, d.Generation) }

// isPromoted says whether a generation is served because people have promoted it.
func (c *Choice) isPromoted(d *Doc) bool {
	return d.needsPromotion() && slices.Contains(c.Promoted, d.Generation)
}

// needsPromotion says whether a complete generation is served only if people promote it.
func (d *Doc) needsPromotion() bool { return d.Status == Refused || d.Canary }

// Chooser changes which generation is served. The processes of the pipeline follow within seconds.
type Chooser struct {
	Store sink.Store
	// Reason is remembered with the decision, "" for none.
	Reason string
	Now    func() time.Time
}

// Promote has generation g served: the canary, one that was withdrawn or refused by the quality gate, or a newer
// one than is pinned. A pin moves to g.
func (c Chooser) Promote(ctx context.Context, g int64) (Decision, error) {
	return c.decide(ctx, "promote", func(at *choosing) (int64, error) {
		if err := at.has(g); err != nil {
			return 0, err
		}
		if at.current != nil && at.current.Generation == g {
			return 0, fmt.Errorf("%w: generation %d is served already", ErrChoice, g)
		}
		at.Withdrawn = slices.DeleteFunc(at.Withdrawn, func(w int64) bool { return w == g })
		if at.docs[g].needsPromotion() {
			at.Promoted = add(at.Promoted, g)
		}
		if at.Pinned != 0 {
			at.Pinned = g
		}
		if doc := at.serves(); doc == nil || doc.Generation != g {
			return 0, fmt.Errorf("%w: generation %d is newer than %d and would be served all the same: "+
				"'giantstream generations pin %d' serves the older one", ErrChoice, doc.Generation, g, g)
		}
		return g, nil
	})
}

// Rollback withdraws the canary, so that the canary topic gets the generation that is served again. Without a
// canary it withdraws the generation that is served, so that the one before it is served again. A pin moves to that
// one.
func (c Chooser) Rollback(ctx context.Context) (Decision, error) {
	return c.decide(ctx, "rollback", func(at *choosing) (int64, error) {
		if at.current == nil {
			return 0, fmt.Errorf("%w: no generation is served", ErrChoice)
		}
		if canary := at.canary(); canary != nil {
			at.Withdrawn = add(at.Withdrawn, canary.Generation)
			return canary.Generation, nil
		}
		g := at.current.Generation
		at.Withdrawn, at.Pinned = add(at.Withdrawn, g), 0
		doc := at.newestBelow(g)
		if doc == nil {
			return 0, fmt.Errorf("%w: the store has no generation before %d; refresh.keep says how many stay",
				ErrChoice, g)
		}
		// A newer one that waited behind the pin must not come up by a rollback.
		if at.pinnedBefore() || at.serves().Generation != doc.Generation {
			at.Pinned = doc.Generation
		}
		return g, nil
	})
}

// Pin has generation g served whatever is built, until Unpin or another Pin.
func (c Chooser) Pin(ctx context.Context, g int64) (Decision, error) {
	return c.decide(ctx, "pin", func(at *choosing) (int64, error) {
		if err := at.has(g); err != nil {
			return 0, err
		}
		if at.Pinned == g {
			return 0, fmt.Errorf("%w: generation %d is pinned already", ErrChoice, g)
		}
		at.Withdrawn = slices.DeleteFunc(at.Withdrawn, func(w int64) bool { return w == g })
		if at.docs[g].needsPromotion() {
			at.Promoted = add(at.Promoted, g)
		}
		at.Pinned = g
		return g, nil
	})
}

// Unpin has the newest generation served again.
func (c Chooser) Unpin(ctx context.Context) (Decision, error) {
	return c.decide(ctx, "unpin", func(at *choosing) (int64, error) {
		if at.Pinned == 0 {
			return 0, fmt.Errorf("%w: no generation is pinned", ErrChoice)
		}
		g := at.Pinned
		at.Pinned = 0
		return g, nil
	})
}

// choosing is a choice that is about to be changed, with the generations that it is about.
type choosing struct {
	Choice
	docs    map[int64]*Doc // complete and not damaged
	numbers []int64        // of docs, ascending
	damaged map[int64]bool
	current *Doc
	pinned  int64 // before the change
}

func (at *choosing) pinnedBefore() bool { return at.pinned != 0 }

// serves returns what is served by the choice as it is now, nil for nothing.
func (at *choosing) serves() *Doc { return at.newestBelow(1 << 62) }

// canary returns the canary, as Newest does; nil for none.
func (at *choosing) canary() *Doc {
	for _, n := range slices.Backward(at.numbers) {
		switch d := at.docs[n]; {
		case at.allows(d):
			return nil
		case at.isCanary(d):
			return d
		case d.Status == Ready:
			return nil
		}
	}
	return nil
}

// newestBelow returns the newest generation below g that may be served, nil for none.
func (at *choosing) newestBelow(g int64) *Doc {
	for _, n := range slices.Backward(at.numbers) {
		if n < g && at.allows(at.docs[n]) {
			return at.docs[n]
		}
	}
	return nil
}

// has returns an error that says why generation g cannot be served, nil if it can.
func (at *choosing) has(g int64) error {
	switch {
	case at.docs[g] != nil:
		return nil
	case at.damaged[g]:
		return fmt.Errorf("%w: generation %d is damaged", ErrChoice, g)
	}
	return fmt.Errorf("%w: there is no complete generation %d; the store has %v", ErrChoice, g, at.numbers)
}

// decide changes the choice. change returns the generation that it has decided about.
func (c Chooser) decide(ctx context.Context, action string, change func(*choosing) (int64, error)) (Decision, error) {
	at := &choosing{docs: map[int64]*Doc{}, damaged: map[int64]bool{}}
	choice, err := LoadChoice(ctx, c.Store)
	if err != nil {
		return Decision{}, err
	}
	at.Choice, at.pinned = *choice, choice.Pinned
	at.Withdrawn, at.Promoted = slices.Clone(at.Withdrawn), slices.Clone(at.Promoted)
	all, err := Numbers(ctx, c.Store)
	if err != nil {
		return Decision{}, err
	}
	for _, n := range all {
		doc, damage, err := loadMarked(ctx, c.Store, n)
		switch {
		case errors.Is(err, ErrNone):
		case err != nil:
			return Decision{}, err
		case damage != nil:
			at.damaged[n] = true
		case doc.Complete():
			at.docs[n], at.numbers = doc, append(at.numbers, n)
		}
	}
	at.current = at.serves()
	d := Decision{At: c.Now().UTC(), Action: action, Reason: c.Reason}
	if at.current != nil {
		d.From = at.current.Generation
	}
	if d.Generation, err = change(at); err != nil {
		return Decision{}, err
	}
	if after := at.serves(); after != nil {
		d.To = after.Generation
	}
	gone := func(g int64) bool { return !slices.Contains(all, g) }
	at.Withdrawn, at.Promoted = slices.DeleteFunc(at.Withdrawn, gone), slices.DeleteFunc(at.Promoted, gone)
	at.Decisions = append(slices.Clone(at.Decisions), d)
	at.Decisions = at.Decisions[max(0, len(at.Decisions)-decisionsKept):]
	data, err := seal.JSON(at.Choice, sink.PlaceOf(c.Store, choiceKey))
	if err != nil {
		return Decision{}, err
	}
	err = sink.Swap(ctx, c.Store, choiceKey, at.stored, data)
	if errors.Is(err, sink.ErrChanged) {
		err = fmt.Errorf("somebody else has decided about generations at the same time; look at them and try again: %w",
			err)
	}
	return d, err
}

// add adds a number to an ascending list.
func add(list []int64, g int64) []int64 {
	at, found := slices.BinarySearch(list, g)
	if found {
		return list
	}
	return slices.Insert(list, at, g)
}

// Standing says what people have decided about a complete generation: "pinned", "withdrawn", "promoted" (though refused
// by the quality gate, or a canary before), "canary", "waiting" (ready, and another one is pinned), or "".
func (c *Choice) Standing(d *Doc) string {
	g := d.Generation
	switch {
	case c.Pinned == g:
		return "pinned"
	case c.isWithdrawn(d):
		return "withdrawn"
	case c.isPromoted(d):
		return "promoted"
	case c.isCanary(d):
		return "canary"
	case d.Status == Ready && g > cmp.Or(c.Pinned, g):
		return "waiting"
	}
	return ""
}
