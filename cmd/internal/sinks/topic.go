package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/client"
	"giantstream/ingest/owner"
	"giantstream/sink/vectordb"
)

// topicSource is the embeddings topic, with a reader for each partition.
type topicSource struct {
	*sink
	client   *client.Client
	opened   bool // the client is this source's own
	topic    string
	topicID  string
	owner    string // id of the pipeline that the topic belonged to at the start, "" for none
	parts    int
	readers  []*client.Reader
	lagGauge *prometheus.GaugeVec
}

func (t *topicSource) gauges() prometheus.Collector {
	t.lagGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "giantstream_sink_lag_records",
		Help: "Records of a partition of the embeddings topic that are not in the database yet."}, []string{"shard"})
	return t.lagGauge
}

func (t *topicSource) describe() (string, []any) {
	return "the topic", []any{"topic", t.topic, "partitions", t.parts}
}

func (t *topicSource) open(ctx context.Context) (o vectordb.Options, err error) {
	t.topic = t.Config.Kafka.Topics.Embeddings
	if t.Canary {
		if t.topic = t.Config.Sink.CanaryTopic; t.topic == "" {
			return o, errors.New("sink.canary_topic: there is no canary topic; name one, and start " +
				"'giantstream run' with it")
		}
	}
	if t.client == nil {
		options, err := wiring.ClientOptions(t.Config)
		if err != nil {
			return o, err
		}
		if t.client, err = client.New(options); err != nil {
			return o, err
		}
		t.opened = true
	}
	known, err := t.client.Identify(ctx, t.topic)
	if errors.Is(err, client.ErrNoTopic) {
		return o, fmt.Errorf("%w; 'giantstream run' creates it when it starts", err)
	}
	if err != nil {
		return o, err
	}
	t.topicID, t.parts = known[t.topic].ID, known[t.topic].Partitions
	claimed, err := owner.Load(ctx, t.client, t.topic, t.topicID)
	if err != nil {
		return o, err
	}
	if claimed != nil {
		t.owner, o.OwnersBefore = claimed.ID, claimed.Before
	}
	o.Topic, o.TopicID, o.Owner, o.Partitions, o.Ends = t.topic, t.topicID, t.owner, t.parts, t.ends
	return o, nil
}

func (t *topicSource) close() {
	if t.opened {
		t.client.Close()
	}
}

func (t *topicSource) start(ctx context.Context, group *errgroup.Group) {
	for p := range t.parts {
		t.readers = append(t.readers, &client.Reader{Client: t.client, Topic: t.topic, Partition: p,
			Offset: t.follower.Next(p), Log: t.Log.With("topic", t.topic, "partition", p)})
	}
	for p, r := range t.readers {
		group.Go(func() error {
			return r.Run(ctx, func(ctx context.Context, got client.Fetched) error {
				records, err := decodeAll(&got, t.Index, t.refuse)
				if err != nil {
					return err
				}
				return t.follower.Handle(ctx, p, records, got.Next)
			})
		})
	}
}

// check returns vectordb.ErrOwner if the topic has another owner than at the start, where it may have had none, and
// errReplaced if it is gone or was created again.
func (t *topicSource) check(ctx context.Context) error {
	known, err := t.client.Identify(ctx, t.topic)
	switch {
	case errors.Is(err, client.ErrNoTopic):
		return fmt.Errorf("%w: %w", errReplaced, err)
	case err != nil:
		return err
	case t.topicID != "" && known[t.topic].ID != "" && known[t.topic].ID != t.topicID:
		return fmt.Errorf("%w: topic %q had the id %s and has %s", errReplaced, t.topic, t.topicID, known[t.topic].ID)
	}
	now, err := owner.Load(ctx, t.client, t.topic, t.topicID)
	if err != nil || now == nil || t.owner == "" || now.ID == t.owner || slices.Contains(now.Before, t.owner) {
		return err
	}
	return fmt.Errorf("topic %q belongs to %w since this sink has started: %s. Start the sink again: it says whether "+
		"it can go on", t.topic, vectordb.ErrOwner, now.Pipeline())
}

// ends returns where the topic ends. It is asked for when a generation begins: then the topic may have another owner.
func (t *topicSource) ends(ctx context.Context) ([]int64, error) {
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	ends, err := t.client.EndOffsets(ctx, t.topic)
	return ends[t.topic], err
}

func (t *topicSource) target(ctx context.Context) (func() bool, error) {
	ends, err := t.ends(ctx)
	return func() bool {
		for p, end := range ends {
			if t.follower.Next(p) < end {
				return false
			}
		}
		return true
	}, err
}

func (t *topicSource) behind() (lag int64, known bool) {
	known = len(t.readers) > 0
	for p, r := range t.readers {
		end, ok := r.End()
		if !ok {
			known = false
			continue
		}
		behind := max(0, end-max(0, t.follower.Next(p)))
		t.lagGauge.WithLabelValues(strconv.Itoa(p)).Set(float64(behind))
		lag += behind
	}
	return lag, known
}

func (t *topicSource) failing() (since time.Time, err error) {
	for _, r := range t.readers {
		if at, failed := r.Failing(); failed != nil && (err == nil || at.Before(since)) {
			since, err = at, failed
		}
	}
	return since, err
}
