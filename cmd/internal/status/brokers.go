package status

import (
	"context"
	"time"

	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
)

// lettersTimeout bounds the counting of dead letters, which reads their whole topic.
const lettersTimeout = 10 * time.Second

// ReadLetters counts the open dead letters on brokers that other processes can reach; nil if they do not
// answer in time, which the lag says.
func ReadLetters(ctx context.Context, cfg *config.Config) *service.DeadLetterCount {
	if cfg.Kafka.Embedded() {
		return nil
	}
	opts, err := wiring.ClientOptions(cfg)
	if err != nil {
		return nil
	}
	c, err := client.New(opts)
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, lettersTimeout)
	defer cancel()
	count, err := service.CountDeadLetters(ctx, c, wiring.TopicsOf(cfg).DeadLetters)
	if err != nil {
		return nil
	}
	return &count
}

// Lags has the number of records that each shard's manifests do not cover, or the reason why it is
// not known.
type Lags struct {
	Shards []int64 `json:"shards,omitempty"`
	// Held is how many of all shards' records follow the beginning of an open transaction, and wait
	// for its end.
	Held  int64  `json:"held_by_open_transactions,omitempty"`
	Error string `json:"error,omitempty"`
}

// LagOf compares the end offsets of the topics with what is committed. Without an answer from the brokers, the
// status still has what the store has. The result is nil where there are no brokers to ask.
func LagOf(readable, ends map[string][]int64, err error, shards []Shard) *Lags {
	switch {
	case err != nil:
		return &Lags{Error: err.Error()}
	case ends == nil:
		return nil
	}
	l := &Lags{Shards: make([]int64, len(shards))}
	for topic, partitions := range ends {
		for p := range min(len(partitions), len(l.Shards)) {
			l.Shards[p] += max(0, partitions[p]-shards[p].broker[topic])
			if p < len(readable[topic]) {
				l.Held += max(0, partitions[p]-readable[topic][p])
			}
		}
	}
	return l
}
