package forget

import (
	"context"
	"maps"
	"slices"
	"strings"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// Known is what the commit log of a store knows of nodes.
type Known struct {
	// Texts are those that the nodes have or had, as far as rows of the past are kept, without those that another node
	// has as well. They ascend.
	Texts []string
	// Live counts the nodes that are not deleted.
	Live int
	// Links are the far ends of live links to the nodes, by the node that has the label: another node, or one of them.
	Links map[string][]Link
	// Own are the far ends of the nodes' links that have a kind or a weight, by node.
	Own map[string][]Link
	// EventTime is the newest of the nodes and of those that have links to them, in microseconds.
	EventTime int64
}

// Link is one of a node's links: its far end and its kind.
type Link struct{ To, Kind string }

// AddDeleted adds the nodes that are deleted to ids, and removes those that live, as the newest rows of a store have
// them.
func AddDeleted(ctx context.Context, ids map[string]bool, store sink.Store, shards int,
	progress ambient.Progress) error {
	progress = ambient.OrDiscard(progress)
	progress.Stage("read which nodes are deleted", 0)
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return err
	}
	for p := range cut {
		for row, err := range cut.Facts(ctx, store, p) {
			switch {
			case err != nil:
				return err
			case row.Deleted:
				ids[strings.Clone(row.NodeID)] = true
			default:
				delete(ids, row.NodeID)
			}
			progress.Add(1)
		}
	}
	return nil
}

// ReadKnown reads all rows of a store for what they know of nodes.
func ReadKnown(ctx context.Context, store sink.Store, shards int, ids map[string]bool, progress ambient.Progress) (
	Known, error) {
	progress = ambient.OrDiscard(progress)
	progress.Stage("read the rows", 0)
	k := Known{Links: map[string][]Link{}, Own: map[string][]Link{}}
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return k, err
	}
	texts := map[string]bool{}
	for p := range cut {
		for row, err := range cut.Logged(ctx, store, p, 0, cut[p]) {
			if err != nil {
				return k, err
			}
			progress.Add(1)
			if ids[row.NodeID] && row.Text != "" {
				texts[row.Text] = true
			}
		}
	}
	for p := range cut {
		for row, err := range cut.Facts(ctx, store, p) {
			if err != nil {
				return k, err
			}
			k.add(&row, ids, texts)
		}
	}
	k.Texts = slices.Sorted(maps.Keys(texts))
	return k, nil
}

// add adds the newest row of a node.
func (k *Known) add(row *commitlog.Row, ids, texts map[string]bool) {
	concerned := ids[row.NodeID]
	if concerned {
		for i, end := range row.LinkEnds {
			k.Own[row.NodeID] = append(k.Own[row.NodeID], Link{end, row.LinkKinds[i]})
		}
	}
	for _, label := range row.Labels {
		if _, listed := slices.BinarySearch(row.LinkEnds, label); ids[label] && !listed {
			k.Links[row.NodeID] = append(k.Links[row.NodeID], Link{To: label})
			concerned = true
		}
	}
	for i, end := range row.LinkEnds {
		if ids[end] {
			k.Links[row.NodeID] = append(k.Links[row.NodeID], Link{end, row.LinkKinds[i]})
			concerned = true
		}
	}
	if concerned {
		k.EventTime = max(k.EventTime, row.EventTime)
	}
	switch {
	case !ids[row.NodeID]:
		delete(texts, row.Text)
	case !row.Deleted:
		k.Live++
	}
}
