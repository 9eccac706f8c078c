package refreshing

import (
	"context"
	"errors"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// orders is what a process remembers of the orders that a generation was built from.
type orders struct {
	generation int64
	applied    int64 // statements up to its cut
}

// changedOrders counts the statements about orders that were applied since the cut of the newest generation, and the
// orders that there are. Both are 0 where no links are made of orders.
func (r *Refresh) changedOrders(ctx context.Context) (changed, all int64, err error) {
	if r.Orders == "" || r.Config.Links.FromOrders.MaxPartners == 0 {
		return 0, 0, nil
	}
	heads, err := r.Heads.NewestOfAll(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, head := range heads {
		if head != nil {
			changed, all = changed+r.applied(head), all+head.Orders
		}
	}
	newest := r.newest()
	if newest == nil {
		return changed, all, nil
	}
	if r.orders.generation != newest.Generation {
		before, err := r.appliedAt(ctx, newest.Cut)
		if err != nil {
			return 0, 0, err
		}
		r.orders = orders{newest.Generation, before}
	}
	return changed - r.orders.applied, all, nil
}

// applied counts the statements about orders that were applied up to a manifest.
func (r *Refresh) applied(m *commitlog.Manifest) int64 { return m.Counted[r.Orders].Total().Applied }

// appliedAt is applied for all shards of a cut. If a manifest of it is gone, none were: everything has changed since.
func (r *Refresh) appliedAt(ctx context.Context, cut commitlog.Cut) (n int64, err error) {
	for p, seq := range cut {
		if seq == 0 {
			continue
		}
		m, err := commitlog.ReadCommitted(ctx, r.Store, p, seq)
		if errors.Is(err, commitlog.ErrRemoved) || errors.Is(err, sink.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		n += r.applied(m)
	}
	return n, nil
}
