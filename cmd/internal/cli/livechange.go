package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/service"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/train/numeric"
)

// liveReport says how two changes went through a running pipeline.
type liveReport struct {
	Node string `json:"node"`
	// TextSeconds is the time from the record with the changed text to its embedding.
	TextSeconds float64 `json:"text_seconds"`
	// Cosine between the embeddings before and after.
	Cosine    float64 `json:"cosine"`
	Shard     int     `json:"shard"`
	Seq       int64   `json:"seq"`
	Neighbour string  `json:"neighbour"`
	// EdgeRemoved is false where the edge was put back: a second quickstart in the same directory
	// does that.
	EdgeRemoved bool `json:"edge_removed"`
	// EdgeSeconds is the time from the edge's record to new embedding records of both ends.
	EdgeSeconds float64 `json:"edge_seconds"`
	// LabelsBefore and LabelsAfter count the node's labels.
	LabelsBefore int `json:"labels_before"`
	LabelsAfter  int `json:"labels_after"`
}

// The node that the quickstart changes, the neighbour that it loses, and the text that it gets:
// about something else altogether.
const (
	changedNode      = "net/http.Client.Do"
	changedNeighbour = "net/http.Request"
	changedText      = "func (c *Client) Do(v any) ([]byte, error)\n" +
		"Do returns the JSON encoding of v, with struct fields renamed by their json tags. " +
		"(Changed by the quickstart, %s.)"
	liveTimeout = 30 * time.Second
)

// changeLive changes a text, then an edge, and waits for the resulting embeddings.
func changeLive(ctx context.Context, s *service.Service, cfg *config.Config) (*liveReport, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, liveTimeout, fmt.Errorf("no new embedding after %s", liveTimeout))
	defer cancel()
	before, err := command.FindNode(ctx, s.Store(), cfg.Shards, changedNode)
	if err != nil {
		return nil, err
	}
	producer := s.Client().NewProducer()
	defer producer.Close() //nolint:errcheck // Send reports what matters
	send := func(topic, key string, value map[string]any) (time.Time, error) {
		data, err := json.Marshal(value)
		if err != nil {
			return time.Time{}, err
		}
		began := time.Now()
		message := kafka.Message{Topic: topic, Key: []byte(key), Value: data, Time: began}
		if err := producer.Send(ctx, message); err != nil {
			return began, err
		}
		return began, producer.Flush(ctx)
	}
	r := &liveReport{Node: changedNode, Neighbour: changedNeighbour, LabelsBefore: len(before.Row.Labels)}

	tail, err := newSinkTail(ctx, s.Client(), cfg.Kafka.Topics.Embeddings)
	if err != nil {
		return nil, err
	}
	began, err := send(cfg.Kafka.Topics.Nodes, changedNode, map[string]any{"id": changedNode, "label": before.Row.Class,
		"text": fmt.Sprintf(changedText, time.Now().Format(time.TimeOnly))})
	if err != nil {
		return nil, err
	}
	got, err := tail.await(ctx, changedNode)
	if err != nil {
		return nil, err
	}
	r.TextSeconds = time.Since(began).Seconds()
	r.Shard, r.Seq = got[0].Shard, got[0].Seq
	if before.Embedding != nil {
		r.Cosine = numeric.Cosine(before.Embedding.Vector, got[0].Vector)
	}

	linked := slices.Contains(before.Row.Labels, changedNeighbour)
	r.EdgeRemoved = linked
	began, err = send(cfg.Kafka.Topics.Edges, changedNode, map[string]any{"src": changedNode, "dst": changedNeighbour,
		"deleted": linked})
	if err != nil {
		return nil, err
	}
	if _, err = tail.await(ctx, changedNode, changedNeighbour); err != nil {
		return nil, err
	}
	r.EdgeSeconds = time.Since(began).Seconds()
	after, err := command.FindNode(ctx, s.Store(), cfg.Shards, changedNode)
	if err != nil {
		return nil, err
	}
	r.LabelsAfter = len(after.Row.Labels)
	return r, nil
}

// sinkTail reads the embeddings topic from its end at the time of its making.
type sinkTail struct {
	client *client.Client
	topic  string
	next   []int64
}

func newSinkTail(ctx context.Context, c *client.Client, topic string) (*sinkTail, error) {
	ends, err := c.EndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	return &sinkTail{client: c, topic: topic, next: ends[topic]}, nil
}

// await returns the first new record of each of the nodes.
func (t *sinkTail) await(ctx context.Context, nodes ...string) ([]embedding.Record, error) {
	found := make([]embedding.Record, len(nodes))
	missing := len(nodes)
	for missing > 0 {
		for p := range t.next {
			f, err := t.client.Fetch(ctx, t.topic, p, t.next[p], 1<<20, 20*time.Millisecond)
			if err != nil {
				if cause := context.Cause(ctx); cause != nil {
					err = cause
				}
				return nil, fmt.Errorf("wait for embeddings on topic %s: %w", t.topic, err)
			}
			t.next[p] = f.Next
			for _, m := range f.Records {
				i := slices.Index(nodes, string(m.Key))
				if i < 0 || found[i].NodeID != "" {
					continue
				}
				if found[i], err = embeddingtopic.Decode(m); err != nil {
					return nil, err
				}
				missing--
			}
		}
	}
	return found, nil
}
