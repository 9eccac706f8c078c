package ingesting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/ingest/client"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// inputs answers for the partition of one shard. It implements shard.Inputs.
type inputs struct {
	client *client.Client
	topics []string
	shard  int
	// partitions notes how many each topic has.
	partitions *prometheus.GaugeVec
}

// Identify implements shard.Inputs.
func (in inputs) Identify(ctx context.Context) (map[string]shard.Identity, error) {
	topics, err := in.client.Identify(ctx, in.topics...)
	if err != nil {
		return nil, err
	}
	out := map[string]shard.Identity{}
	for name, t := range topics {
		in.partitions.WithLabelValues(name).Set(float64(t.Partitions))
		out[name] = shard.Identity{ID: t.ID, Partitions: t.Partitions}
	}
	return out, nil
}

// Bounds implements shard.Inputs.
func (in inputs) Bounds(ctx context.Context) (map[string]shard.Bounds, error) {
	first, err := in.client.FirstOffsets(ctx, in.topics...)
	if err != nil {
		return nil, err
	}
	ends, err := in.client.LogEndOffsets(ctx, in.topics...)
	if err != nil {
		return nil, err
	}
	out := map[string]shard.Bounds{}
	for _, topic := range in.topics {
		if p := in.shard; p < len(first[topic]) && p < len(ends[topic]) {
			out[topic] = shard.Bounds{Oldest: first[topic][p], End: ends[topic][p]}
		}
	}
	return out, nil
}

// Fingerprint implements shard.Inputs.
func (in inputs) Fingerprint(ctx context.Context, topic string, offset int64) (string, error) {
	return in.client.FingerprintAt(ctx, topic, in.shard, offset)
}

// acceptance is what a person has accepted with this start of the process. It holds for each shard
// until the shard has committed a manifest.
type acceptance struct {
	lost     map[string]bool // topics
	replaced map[string]bool // topics

	mu   sync.Mutex
	done map[int]bool // shards
}

// accept makes an acceptance of topics by name. resent says that files, which are the only source of the embedded
// broker's topics, are sent again: its log may have been removed, and nothing is lost with it.
func accept(inputs, topics []string, resent bool) (*acceptance, error) {
	a := &acceptance{lost: map[string]bool{}, replaced: map[string]bool{}, done: map[int]bool{}}
	for _, topic := range topics {
		if !slices.Contains(inputs, topic) {
			return nil, fmt.Errorf("no input topic is named %q, whose loss is to be accepted: they are %s",
				topic, strings.Join(inputs, ", "))
		}
		a.lost[topic], a.replaced[topic] = true, true
	}
	if resent {
		for _, topic := range inputs {
			a.lost[topic], a.replaced[topic] = true, true
		}
	}
	return a, nil
}

// acceptedFor returns what is accepted for a shard at present.
func (a *acceptance) acceptedFor(number int) shard.Accept {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done[number] {
		return shard.Accept{}
	}
	return shard.Accept{Replaced: maps.Clone(a.replaced), Lost: maps.Clone(a.lost)}
}

// committed notes that a shard has committed a manifest.
func (a *acceptance) committed(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done[number] = true
}

// pending returns how many losses that a manifest names are accepted, while no newer manifest says
// so.
func (a *acceptance) pending(head *commitlog.Manifest) (n int64) {
	if head == nil {
		return 0
	}
	lost := a.acceptedFor(head.Shard).Lost
	for _, l := range head.Lost {
		if lost[l.Topic] {
			n++
		}
	}
	return n
}

// Lost returns the losses that the newest manifests name: records that were deleted from the topics
// before they were read, or before a lost state could be built from them again.
func (in *Ingest) Lost(ctx context.Context) (out []commitlog.ShardLost, err error) {
	if out, err = in.copies.Lost(ctx); err != nil {
		return nil, err
	}
	heads, err := in.Heads.NewestOfAll(ctx)
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		if head != nil {
			out = append(out, head.ShardLosses()...)
		}
	}
	return out, nil
}

// strayed returns what is wrong with the partitions of the input topics, "" for nothing: records of
// partitions that no shard reads.
func (in *Ingest) strayed(first, ends map[string][]int64) string {
	for _, topic := range in.Topics.Inputs() {
		partitions := ends[topic]
		if len(partitions) <= in.Config.Shards {
			continue
		}
		var records int64
		for p := in.Config.Shards; p < len(partitions) && p < len(first[topic]); p++ {
			records += partitions[p] - first[topic][p]
		}
		return fmt.Sprintf("kafka topic %q has %d partitions, and the pipeline has %d shards: "+
			"%d records in partitions %d to %d are read by nobody", topic, len(partitions), in.Config.Shards, records,
			in.Config.Shards, len(partitions)-1)
	}
	return ""
}
