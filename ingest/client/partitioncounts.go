package client

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// countsFor is how long a count of partitions is used. The transport itself keeps what brokers say
// about topics for seconds.
const countsFor = 100 * time.Millisecond

// partitionCounts answers what a kafka.Writer asks for each record: how many partitions its topic has.
// The transport has the answer in memory, too, but takes longer to find it than a record of 50 bytes
// takes otherwise.
type partitionCounts struct {
	kafka.RoundTripper
	mu      sync.Mutex
	answers map[string]partitionsAnswer // by topic
}

type partitionsAnswer struct {
	*metadata.Response
	until time.Time
}

// RoundTrip implements kafka.RoundTripper.
func (p *partitionCounts) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	m, ok := req.(*metadata.Request)
	if !ok || len(m.TopicNames) != 1 || m.AllowAutoTopicCreation {
		return p.RoundTripper.RoundTrip(ctx, addr, req)
	}
	topic, now := m.TopicNames[0], time.Now()
	p.mu.Lock()
	known, ok := p.answers[topic]
	p.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.Response, nil
	}
	res, err := p.RoundTripper.RoundTrip(ctx, addr, req)
	if got, ok := res.(*metadata.Response); ok && err == nil && len(got.Topics) == 1 && got.Topics[0].ErrorCode == 0 {
		p.mu.Lock()
		if p.answers == nil {
			p.answers = map[string]partitionsAnswer{}
		}
		p.answers[topic] = partitionsAnswer{got, now.Add(countsFor)}
		p.mu.Unlock()
	}
	return res, err
}
