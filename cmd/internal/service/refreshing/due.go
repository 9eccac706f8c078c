package refreshing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"giantstream/cmd/internal/wiring"
	"giantstream/train/generation"
)

// Due reports whether a new generation should start now, and why.
func (r *Refresh) Due(ctx context.Context) (bool, string, error) {
	if why, err := r.unbuilt(ctx); why != "" || err != nil {
		return why != "", why, err
	}
	changes, nodes, edges, err := r.Changes(ctx)
	if err != nil {
		return false, "", err
	}
	changedOrders, orders, err := r.changedOrders(ctx)
	if err != nil || changes == 0 && changedOrders == 0 {
		return false, "", err
	}
	newest, triggers := r.newest(), r.Settings.Get().Refresh
	if newest == nil {
		if nodes < int64(triggers.MinNodes) {
			return false, "", nil
		}
		// The first generation waits for the backlog: one that is fitted on half a catalog would be
		// replaced at once.
		read, err := r.waitedFor(ctx, 0)
		return read, fmt.Sprintf("%d nodes and no generation yet", nodes), err
	}
	if first := firstOf(newest, edges, changedOrders); first != "" {
		// As for the first generation: one on half of the links would be replaced at once.
		read, err := r.waitedFor(ctx, newest.Generation)
		return read, fmt.Sprintf("the first %s since generation %d", first, newest.Generation), err
	}
	age := time.Since(newest.Created)
	drifted := r.BecauseDrifted(changes, nodes)
	switch {
	case float64(changes) >= rowsOf(triggers.MinChanges, nodes):
		return true, fmt.Sprintf("%d rows changed since generation %d", changes, newest.Generation), nil
	case changedOrders > 0 && float64(changedOrders) >= rowsOf(triggers.MinChanges, orders):
		return true, fmt.Sprintf("%d changes of orders since generation %d", changedOrders, newest.Generation), nil
	case drifted != "":
		return true, drifted, nil
	case age >= triggers.MaxAge:
		return true, fmt.Sprintf("generation %d is %s old", newest.Generation, age.Round(time.Second)), nil
	}
	return false, "", nil
}

// awaited is what a generation waits for.
type awaited struct {
	after       int64 // the generation before it, 0 for none
	uncommitted func(context.Context) (int64, error)
}

// waitedFor says whether all is committed that had been sent when it was first asked about the generation after one.
func (r *Refresh) waitedFor(ctx context.Context, after int64) (bool, error) {
	if r.awaited.uncommitted == nil || r.awaited.after != after {
		r.awaited = awaited{after, r.Backlog.Await()}
	}
	open, err := r.awaited.uncommitted(ctx)
	return err == nil && open == 0, err
}

const becauseUnfinished = "an unfinished generation is there to resume"

// unbuilt says why a generation is to be built even if nothing has changed, "" if there is no such reason.
func (r *Refresh) unbuilt(ctx context.Context) (why string, err error) {
	unfinished, _, err := generation.Next(ctx, r.Store)
	if err != nil {
		return "", err
	}
	if unfinished != nil {
		return becauseUnfinished, nil
	}
	return r.becauseDamaged(), nil
}

// rowsOf returns how many rows a field says, which has a share of all nodes or orders below 1, else a number.
func rowsOf(field float64, all int64) float64 {
	if field < 1 {
		return field * float64(all)
	}
	return field
}

// firstOf says what there is now that a generation was built without: the first edges, or the first orders.
func firstOf(doc *generation.Doc, edges, changedOrders int64) string {
	switch {
	case firstLinks(doc, edges):
		return "links"
	case doc.Graph.Orders == nil && changedOrders > 0:
		return "orders"
	}
	return ""
}

// firstLinks says whether a generation was built before the graph had its first edge. Where it had
// edges to nodes that did not exist, more of these are no news: the usual rules apply.
func firstLinks(doc *generation.Doc, edges int64) bool {
	return doc.TextOnly != "" && doc.Graph.Links == 0 && doc.Graph.Dangling == 0 && edges > 0
}

// newest returns the generation that was built last, also one that is not served; nil for none.
func (r *Refresh) newest() *generation.Doc { return r.last.Load() }

// Changes counts the rows committed since the cut of the newest generation (since the beginning,
// without one), the live nodes and the edge assertions.
func (r *Refresh) Changes(ctx context.Context) (changed, nodes, edges int64, err error) {
	var cut map[int]int64
	if doc := r.newest(); doc != nil {
		cut = doc.Cut
	}
	heads, err := r.Heads.NewestOfAll(ctx)
	for p, head := range heads {
		if head == nil {
			continue
		}
		nodes, edges = nodes+head.Nodes, edges+head.Edges
		rows, err := r.Heads.RowsSince(ctx, p, cut[p])
		if err != nil {
			return 0, 0, 0, err
		}
		changed += rows
	}
	if err != nil {
		return 0, 0, 0, err
	}
	r.drift.changed(changed, nodes)
	return changed, nodes, edges, nil
}

// Outdated reports whether the current generation lacks something that is committed, and why.
func (r *Refresh) Outdated(ctx context.Context) (bool, string, error) {
	if why, err := r.unbuilt(ctx); why != "" || err != nil {
		return why != "", why, err
	}
	changes, _, _, err := r.Changes(ctx)
	if err != nil || changes > 0 {
		return changes > 0, fmt.Sprintf("%d rows changed", changes), err
	}
	changes, _, err = r.changedOrders(ctx)
	return changes > 0, fmt.Sprintf("%d changes of orders", changes), err
}

// becauseSettings says what the configuration asks of embeddings that the newest generation's do not have, ""
// for nothing.
func (r *Refresh) becauseSettings() string {
	newest := r.newest()
	if newest == nil {
		return ""
	}
	changed := wiring.ChangedSettings(newest, r.Config)
	if len(changed) == 0 {
		return ""
	}
	return fmt.Sprintf("generation %d was made with other settings: %s", newest.Generation, strings.Join(changed, "; "))
}

// SayWhatDiffers logs what of the configuration the served embeddings do not have yet.
func (r *Refresh) SayWhatDiffers() {
	if newest := r.newest(); newest != nil {
		if changed := wiring.ChangedSettings(newest, r.Config); len(changed) > 0 {
			r.Log.Warn("settings differ from those of the newest generation, which keeps serving until the next "+
				"refresh; 'giantstream rebuild' makes one with these now", "generation", newest.Generation,
				"differences", changed)
		}
	}
}
