package service

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/retry"
	"giantstream/sink/memstore"
)

// What was sent before is read, learned from and published, though producers never pause.
func TestWaitsEndUnderProducersThatNeverPause(t *testing.T) {
	s, cfg := startService(t, Options{Store: &memstore.Store{}, Log: slog.New(slog.DiscardHandler)})
	produceGraph(t, s, cfg)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	produced := make(chan error, 1)
	go func() {
		p := s.Client().NewProducer()
		defer p.Close()
		for i := 0; ; i++ {
			node := nodeID(i % nodes)
			err := p.Send(ctx, kafka.Message{Topic: cfg.Kafka.Topics.Nodes, Key: []byte(node), Time: time.Now(),
				Value: fmt.Appendf(nil, `{"id": %q, "text": "%s, for the %dth time"}`, node, text(i%nodes, 1), i)})
			if err == nil {
				err = p.Flush(ctx)
			}
			if err == nil {
				err = retry.Sleep(ctx, time.Millisecond)
			}
			if err != nil {
				produced <- err
				return
			}
		}
	}()
	if err := upToDate(t, s, 0); err != nil {
		t.Fatal(err)
	}
	if got := sinkTopic(t, s, cfg); len(got) != nodes {
		t.Errorf("%d nodes were published, want %d", len(got), nodes)
	}
	select {
	case err := <-produced:
		t.Errorf("the producer ended: %v", err)
	default:
		stop()
		<-produced
	}
}
