package reshard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// rebuild is what makes a generation that has learned nothing before its cut.
const rebuild = "Build one that takes nothing of those before ('giantstream rebuild --set refresh.space=turn'), " +
	"and let it be published"

// prepareForgetting returns an error if a node that is to be forgotten is not deleted everywhere: the new store would
// have what it once was, or would not say to consumers that it is gone. With ForgetDeleted it chooses the nodes
// instead, and returns how many deleted nodes stay.
func (r *run) prepareForgetting(ctx context.Context) (stay int, err error) {
	if len(r.Forget) == 0 && !r.ForgetDeleted {
		return 0, nil
	}
	r.Progress.Stage("look for what is to be forgotten", 0)
	cursors, err := r.cursors(ctx)
	if err != nil {
		return 0, err
	}
	cuts := r.layers(cursors).cuts // of which the rows are taken over
	if g := r.Generation; g != nil {
		first, err := g.LearnedFrom()
		if err != nil {
			return 0, fmt.Errorf("what is in generation %d: %w. %s", g.Number(), err, rebuild)
		}
		cuts = slices.Concat([]commitlog.Cut{first}, cuts)
	}
	if r.ForgetDeleted {
		return r.chooseDeleted(ctx, cuts, cursors)
	}
	for i, cut := range cuts {
		err := r.checkDeleted(ctx, cut, cursors)
		if g := r.Generation; errors.Is(err, shard.ErrLive) && g != nil && i <= 1 {
			err = fmt.Errorf("generation %d was built before the deletion, or has learned from one that was: %w. %s",
				g.Number(), err, rebuild)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// chooseDeleted makes Forget the nodes that checkDeleted accepts at all cuts.
func (r *run) chooseDeleted(ctx context.Context, cuts []commitlog.Cut, cursors []commitlog.Published) (int, error) {
	forget, all := map[string]bool{}, 0
	err := r.eachFact(ctx, cuts[len(cuts)-1], func(p int, row *commitlog.Row) error {
		if row.Deleted {
			all++
			if r.isPublished(p, row, cursors) {
				forget[strings.Clone(row.NodeID)] = true
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, cut := range cuts {
		err := r.eachFact(ctx, cut, func(_ int, row *commitlog.Row) error {
			if !row.Deleted {
				delete(forget, row.NodeID)
			}
			for _, label := range row.Labels {
				delete(forget, label)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if len(forget) == 0 {
		return 0, fmt.Errorf("no node can be forgotten: %d are deleted. Delete all links to them ('giantstream "+
			"forget --deleted'), build a generation ('giantstream rebuild --set refresh.space=turn'), and have it "+
			"published first", all)
	}
	r.Forget = forget
	return all - len(forget), nil
}

// checkDeleted returns an error if the graph at a cut has a node that is to be forgotten or a link to one, or if the
// deletion of one is not published.
func (r *run) checkDeleted(ctx context.Context, cut commitlog.Cut, cursors []commitlog.Published) error {
	return r.eachFact(ctx, cut, func(p int, row *commitlog.Row) error {
		for _, label := range row.Labels {
			if r.Forget[label] {
				return fmt.Errorf("node %q cannot be forgotten: %w", label, shard.ErrLive)
			}
		}
		switch {
		case !r.Forget[row.NodeID]:
		case !row.Deleted:
			return fmt.Errorf("node %q cannot be forgotten: %w", row.NodeID, shard.ErrLive)
		case !r.isPublished(p, row, cursors):
			return fmt.Errorf("%w: the deletion of node %q is not published. Start the pipeline of before once "+
				"more, and stop it when it is idle", ErrBusy, row.NodeID)
		}
		return nil
	})
}

// isPublished reports whether consumers were told of a row. Before the first generation they know nothing.
func (r *run) isPublished(p int, row *commitlog.Row, cursors []commitlog.Published) bool {
	return r.Generation == nil || cursors[p].Seq >= row.Seq
}

// eachFact calls each with the newest row of every node at a cut.
func (r *run) eachFact(ctx context.Context, cut commitlog.Cut, each func(p int, row *commitlog.Row) error) error {
	for p := range cut {
		for row, err := range cut.Facts(ctx, r.From, p) {
			if err == nil {
				err = each(p, &row)
			}
			if err != nil {
				return err
			}
			r.Progress.Add(1)
		}
	}
	return nil
}
