package reshard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// findStarts decides where each new shard begins to read its inputs. It returns ErrBusy if a topic
// that is left has records that the old shards have not committed.
//
// Offsets of the commit log go on beyond those of all old shards, so every record to come is later than every
// record that was committed, as versions count. The mirror topic begins anew: the states have its assertions.
func (r *run) findStarts(ctx context.Context) error {
	r.inputs = map[string][]start{}
	for before, after := range r.renamed() {
		if err := r.findStart(ctx, before, after); err != nil {
			return err
		}
	}
	if r.Before.Topics.Mirror == "" {
		return nil
	}
	_, err := r.remains(ctx, r.Before.Topics.Mirror)
	return err
}

// renamed yields the name of each input before and after, without the mirror.
func (r *run) renamed() iter.Seq2[string, string] {
	before, after := r.Before.Topics, r.After.Topics
	return func(yield func(string, string) bool) {
		if !yield(before.Nodes, after.Nodes) || !yield(before.Edges, after.Edges) {
			return
		}
		for i, topic := range before.Further {
			if topic != "" && !yield(topic, after.Further[i]) {
				return
			}
		}
	}
}

func (r *run) findStart(ctx context.Context, before, topic string) error {
	now, err := r.Cluster.Topic(ctx, topic)
	if err != nil {
		return err
	}
	grown := before == topic // the same topic with more partitions
	var floor int64          // above all offsets of the commit log
	for p := range r.Before.Shards {
		next, in := r.head(p, before)
		floor = max(floor, next+1)
		if in.ID != "" && now.ID != "" && in.ID != now.ID {
			grown = false
		}
	}
	if !grown {
		if err := r.consumed(ctx, before); err != nil {
			return err
		}
	}
	for q := range r.shards {
		at := now.First[q]
		in := commitlog.Input{ID: now.ID, Partitions: r.shards}
		if grown && q < r.Before.Shards {
			next, had := r.head(q, before)
			at = max(at, next-had.Base)
			if had.Last != nil {
				in.Last = &mutation.Record{Offset: had.Last.Offset - had.Base + floor - at,
					Fingerprint: had.Last.Fingerprint}
			}
			left, err := r.remains(ctx, topic)
			if err != nil {
				return err
			}
			r.waiting += max(0, left.ends[q]-at)
		}
		// The state holds what the topic cannot give again. Without one, everything from offset 0 on is lost.
		in.First, in.Base = 0, floor-at
		r.inputs[topic] = append(r.inputs[topic], start{next: floor, input: in})
	}
	return nil
}

// consumed returns ErrBusy if a topic that is left has records that are not committed.
func (r *run) consumed(ctx context.Context, topic string) error {
	accepted := slices.Contains(r.AcceptLoss, topic)
	left, err := r.remains(ctx, topic)
	if errors.Is(err, ErrNoTopic) {
		if accepted {
			return nil
		}
		return fmt.Errorf("%w: it cannot be told whether all its records are committed. If they are, accept that with "+
			"--accept-loss %s", err, topic)
	}
	if err != nil || accepted {
		return err
	}
	var open int64
	for p, end := range left.ends {
		next, in := r.head(p, topic)
		if in.ID != "" && left.id != "" && in.ID != left.id {
			return fmt.Errorf("kafka topic %q was deleted and created again: it cannot be told whether all records of "+
				"the one before are committed. If they are, accept that with --accept-loss %s", topic, topic)
		}
		open += max(0, end+in.Base-next)
	}
	if open > 0 {
		return fmt.Errorf("%w: %d records of kafka topic %q are not committed, and it is left for another one. Stop "+
			"the producers, run 'giantstream run --until-idle' with the configuration of before, and then this command",
			ErrBusy, open, topic)
	}
	return nil
}

// remains is what an old topic still holds.
type remains struct {
	id   string
	ends map[int]int64 // by partition
}

// remains returns what is left of an old topic.
func (r *run) remains(ctx context.Context, topic string) (remains, error) {
	if left, ok := r.left[topic]; ok {
		return left, nil
	}
	now, err := r.Cluster.Topic(ctx, topic)
	if err != nil {
		return remains{}, err
	}
	left := remains{now.ID, map[int]int64{}}
	for p, end := range now.End {
		if next, _ := r.head(p, topic); next > 0 || end > now.First[p] {
			left.ends[p] = end
		}
	}
	r.left[topic] = left
	return left, nil
}
