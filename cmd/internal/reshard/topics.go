package reshard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"giantstream/ingest/client"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// findStarts decides where each new shard begins to read the nodes and the edges. It returns ErrBusy if a topic
// that is left has records that the old shards have not committed.
//
// Offsets of the commit log go on beyond those of all old shards, so every record to come is later than every
// record that was committed, as versions count. The mirror topic begins anew: the states have its assertions.
func (r *run) findStarts(ctx context.Context) error {
	r.inputs = map[string][]start{}
	for _, t := range [][2]string{{r.old.Nodes, r.topics.Nodes}, {r.old.Edges, r.topics.Edges}} {
		if err := r.findStart(ctx, t[0], t[1]); err != nil {
			return err
		}
	}
	if r.old.Mirror == "" {
		return nil
	}
	_, err := r.remains(ctx, r.old.Mirror)
	return err
}

func (r *run) findStart(ctx context.Context, before, topic string) error {
	now, err := r.Client.Identify(ctx, topic)
	if err != nil {
		return err
	}
	first, err := r.Client.FirstOffsets(ctx, topic)
	if err != nil {
		return err
	}
	grown := before == topic // the same topic with more partitions
	var floor int64          // above all offsets of the commit log
	for p := range r.before.Shards {
		next, in := r.head(p, before)
		floor = max(floor, next+1)
		if in.ID != "" && now[topic].ID != "" && in.ID != now[topic].ID {
			grown = false
		}
	}
	if !grown {
		if err := r.consumed(ctx, before); err != nil {
			return err
		}
	}
	for q := range r.shards {
		at := first[topic][q]
		in := commitlog.Input{ID: now[topic].ID, Partitions: r.shards}
		if grown && q < r.before.Shards {
			next, had := r.head(q, before)
			at = max(at, next-had.Base)
			if had.Last != nil {
				in.Last = &mutation.Record{Offset: had.Last.Offset - had.Base + floor - at,
					Fingerprint: had.Last.Fingerprint}
			}
			end, err := r.remains(ctx, topic)
			if err != nil {
				return err
			}
			r.waiting += max(0, end[q]-at)
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
	ends, err := r.remains(ctx, topic)
	if errors.Is(err, client.ErrNoTopic) {
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
	for p, end := range ends {
		next, in := r.head(p, topic)
		if in.ID != "" && r.ids[topic].ID != "" && in.ID != r.ids[topic].ID {
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

// remains returns the ends of a topic of before, by partition.
func (r *run) remains(ctx context.Context, topic string) (map[int]int64, error) {
	if ends, ok := r.ends[topic]; ok {
		return ends, nil
	}
	id, err := r.Client.Identify(ctx, topic)
	if err != nil {
		return nil, err
	}
	first, err := r.Client.FirstOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	got, err := r.Client.LogEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends := map[int]int64{}
	for p, end := range got[topic] {
		if next, _ := r.head(p, topic); next > 0 || end > first[topic][p] {
			ends[p] = end
		}
	}
	if r.ends == nil {
		r.ends, r.ids = map[string]map[int]int64{}, map[string]client.TopicIdentity{}
	}
	r.ends[topic], r.ids[topic] = ends, cmp.Or(id[topic], client.TopicIdentity{})
	return ends, nil
}
