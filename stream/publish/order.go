package publish

import (
	"context"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// newest are the newest rows of the nodes that have changed in a stretch of the log. A row that one of them supersedes
// is not published where the topic may have the newer one already: the node would go back in time until its newest row
// is sent again.
type newest struct {
	to  int64            // the stretch ends with this manifest
	seq map[string]int64 // by node
	// alone are, by node, the manifests of the newest attributes that changed alone, if attributes are published.
	alone map[string]int64
}

func (n *newest) add(r commitlog.Row) {
	if n.seq == nil {
		n.seq = map[string]int64{}
	}
	n.seq[r.NodeID] = max(n.seq[r.NodeID], r.Seq)
}

func (n *newest) addAttributes(r commitlog.AttributesRow) {
	if n.alone == nil {
		n.alone = map[string]int64{}
	}
	n.alone[r.NodeID] = max(n.alone[r.NodeID], r.Seq)
}

// attributesAfter says whether the attributes of a node were committed again after a manifest.
func (n *newest) attributesAfter(node string, seq int64) bool {
	return max(n.seq[node], n.alone[node]) > seq
}

// supersedes says whether a row is not the newest of its node.
func (n *newest) supersedes(r commitlog.Row) bool { return r.Seq < n.seq[r.NodeID] }

// newestAfter reads the newest rows after a manifest, up to the head. Behind manifest `most` it stops where what is
// published would be saved, see full.
func (f *Follower) newestAfter(ctx context.Context, model *Model, after, most int64) (n newest, err error) {
	count, segments := 0, 0
	for s, err := range commitlog.Segments(ctx, f.opts.Store, f.opts.Shard, after, 0) {
		if err != nil {
			return n, err
		}
		for r, err := range s.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: []string{rows.ColNodeID}}) {
			if err != nil {
				return n, err
			}
			n.add(r)
			if r.Seq > most {
				count++
			}
		}
		for r, err := range model.attributesAlone(ctx, f.opts.Store, s) {
			if err != nil {
				return n, err
			}
			n.addAttributes(r)
			if r.Seq > most {
				count++
			}
		}
		if n.to = s.To; s.To > most {
			segments++
		}
		if full(count, segments) {
			break
		}
	}
	return n, nil
}

// lookAhead finds out which rows after the follower's position are superseded by rows that the topic may have: those
// up to Published.Ahead, and those that were sent after the cursor had been saved last, which full bounds.
func (f *Follower) lookAhead(ctx context.Context, model *Model) (err error) {
	switch {
	case f.repeats:
	case f.at.Seq < f.ahead.to:
		return nil
	case f.at.Ahead <= f.at.Seq:
		f.ahead = newest{}
		return nil
	}
	f.ahead, err = f.newestAfter(ctx, model, f.at.Seq, f.at.Ahead)
	f.repeats = err != nil
	return err
}

// catchesUp says whether the topic may have rows that this follower has not reached.
func (f *Follower) catchesUp() bool { return f.at.Seq < max(f.at.Ahead, f.ahead.to) }
