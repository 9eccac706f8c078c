package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	franzsasl "github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"giantstream/internal/retry"
)

// TopicIdentity is what tells a topic from another one of the same name.
type TopicIdentity struct {
	// ID is the id that the brokers gave the topic when it was created. It is "" where the brokers
	// give none (Kafka before 2.8).
	ID         string
	Partitions int
}

// Identify asks the brokers what the topics are at present. The answer is not cached, so it is at
// least as new as the call. A topic that does not exist is ErrNoTopic.
//
// It is the one request that kafka-go cannot make: topic ids came with version 10 of Metadata, and
// kafka-go ends at 8. So it goes through franz-go, which the embedded broker links anyway.
func (c *Client) Identify(ctx context.Context, topics ...string) (map[string]TopicIdentity, error) {
	return retryUntilTimeout(ctx, func(ctx context.Context) (map[string]TopicIdentity, error) {
		return c.identify(ctx, topics)
	})
}

func (c *Client) identify(ctx context.Context, topics []string) (map[string]TopicIdentity, error) {
	franz, err := c.franz.get()
	if err != nil {
		return nil, err
	}
	res, err := metadataRequest(topics).RequestWith(ctx, franz)
	if err != nil {
		return nil, c.unread(err)
	}
	out := map[string]TopicIdentity{}
	for _, t := range res.Topics {
		if t.Topic == nil {
			continue
		}
		err := kerr.ErrorForCode(t.ErrorCode)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil, noTopic(*t.Topic)
		}
		if err != nil {
			return nil, fmt.Errorf("kafka topic %q: reading its metadata: %w", *t.Topic, err)
		}
		id := TopicIdentity{Partitions: len(t.Partitions)}
		if t.TopicID != [16]byte{} {
			id.ID = fmt.Sprintf("%x", t.TopicID)
		}
		out[*t.Topic] = id
	}
	for _, name := range topics {
		if _, ok := out[name]; !ok {
			return nil, noTopic(name)
		}
	}
	return out, nil
}

func metadataRequest(topics []string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

// awaitBrokers waits until every broker that answers knows the topics. One hears of a topic later than others, and
// whom the next request goes to is chance.
func (c *Client) awaitBrokers(ctx context.Context, topics []string) error {
	franz, err := c.franz.get()
	if err != nil {
		return err
	}
	if _, err := c.Identify(ctx, topics...); err != nil && !errors.Is(err, ErrNoTopic) { // who they are
		return err
	}
	req := metadataRequest(topics)
	var unknown error
	err = retry.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		unknown = nil
		for _, b := range franz.DiscoveredBrokers() {
			if res, ok := topicsOf(ctx, b, req); ok {
				unknown = errors.Join(unknown, unknownTopic(res))
			}
		}
		return unknown == nil, nil
	})
	return errors.Join(err, unknown)
}

// topicsOf returns a broker's answer, false for one that is away.
func topicsOf(ctx context.Context, b *kgo.Broker, req *kmsg.MetadataRequest) (*kmsg.MetadataResponse, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	res, err := b.Request(ctx, req)
	answer, ok := res.(*kmsg.MetadataResponse)
	return answer, ok && err == nil
}

// unknownTopic returns ErrNoTopic of the first topic that a broker does not know, nil for none.
func unknownTopic(res *kmsg.MetadataResponse) error {
	for _, t := range res.Topics {
		if t.Topic != nil && t.ErrorCode == kerr.UnknownTopicOrPartition.Code {
			return noTopic(*t.Topic)
		}
	}
	return nil
}

// franzClient is a franz-go client that is made when it is first needed.
type franzClient struct {
	options []kgo.Opt
	mu      sync.Mutex
	client  *kgo.Client
}

func (f *franzClient) get() (*kgo.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client == nil {
		// Retries are retryUntilTimeout's.
		client, err := newFranz(append(slices.Clip(f.options), kgo.RequestRetries(0)))
		if err != nil {
			return nil, err
		}
		f.client = client
	}
	return f.client, nil
}

func (f *franzClient) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client != nil {
		f.client.Close()
		f.client = nil
	}
}

// Franz returns a franz-go client that connects as this client does, for protocols that kafka-go lacks. The caller
// closes it.
func (c *Client) Franz(opts ...kgo.Opt) (*kgo.Client, error) {
	return newFranz(append(slices.Clip(c.franz.options), opts...))
}

func newFranz(opts []kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// franzOptions says to franz-go what Options says to kafka-go.
func franzOptions(o Options) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(o.Brokers...), kgo.DialTimeout(dialTimeout),
		kgo.RequestTimeoutOverhead(dialTimeout)}
	if o.ClientID != "" {
		opts = append(opts, kgo.ClientID(o.ClientID))
	}
	if o.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(o.TLS.Clone()))
	}
	if s := o.SASL; s != nil {
		var mechanism franzsasl.Mechanism
		switch s.Mechanism {
		case "PLAIN":
			mechanism = plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()
		case "SCRAM-SHA-256":
			mechanism = scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism()
		case "SCRAM-SHA-512":
			mechanism = scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism()
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts
}
