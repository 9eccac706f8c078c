package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink/memstore"
)

// history is what writers have done and readers have seen of the prices of some items. A price is the number of its
// write, and each item has one writer.
type history struct {
	mu       sync.Mutex
	acked    map[string]int // the newest write that is done, or that a read has seen, by item
	begun    map[string]int // the newest write that has begun
	problems []string
}

// read notes a read of all items. before is what floor returned when it began.
func (h *history) read(before, prices map[string]int, where string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for item, least := range before {
		price, there := prices[item]
		switch {
		case !there:
			h.problems = append(h.problems, fmt.Sprintf("%s lacks %s", where, item))
		case price < least:
			h.problems = append(h.problems, fmt.Sprintf("%s has %d of %s after %d was written or read", where, price,
				item, least))
		case price > h.begun[item]:
			h.problems = append(h.problems, fmt.Sprintf("%s has %d of %s, which nobody has written", where, price, item))
		}
		h.acked[item] = max(h.acked[item], price) // whoever reads later sees no less
	}
}

// floor is what a read that begins now must see.
func (h *history) floor() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.acked)
}

// Reads as of the end are linearizable: each has seen every write that was acknowledged before it began, by whomever,
// and whatever a read that ended before it has seen, on any server. One of two servers is started again meanwhile.
func TestReadsAsOfTheEndAreLinearizable(t *testing.T) {
	brokers, _ := testBroker(t)
	store := &memstore.Store{}
	cfg := config.Default()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "shop", 2, ""
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.Kafka.Brokers, cfg.Kafka.SessionTimeout, cfg.Window.Time = brokers, time.Second, 10*time.Millisecond
	cfg.Train.Encoder, cfg.Evaluate.HoldoutEdges, cfg.Embedding.Dim = "linear", 0, 4
	cfg.Refresh.MinNodes, cfg.Refresh.MinChanges = 2, 1e6
	cfg.Ingest.Nodes.Attributes = config.List{"price:number"}
	c, err := client.New(client.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := wiring.EnsureTopics(t.Context(), c, &cfg); err != nil {
		t.Fatal(err)
	}
	const items, all = 6, 40 // with prices that change, and others, whose texts they take
	write := func(ctx context.Context, p *client.Producer, item string, like, n int) error {
		like = (like + n/all) % all
		value, err := json.Marshal(map[string]any{"id": item, "text": text(like, like%4), "price": n})
		if err != nil {
			return err
		}
		if err := p.Send(ctx, kafka.Message{Topic: cfg.Kafka.Topics.Nodes, Key: []byte(item), Value: value}); err != nil {
			return err
		}
		return p.Flush(ctx)
	}
	h := &history{acked: map[string]int{}, begun: map[string]int{}}
	p := c.NewProducer()
	for i := range all {
		if err := write(t.Context(), p, nodeID(i), i, 0); err != nil {
			t.Fatal(err)
		}
		if i < items {
			h.acked[nodeID(i)], h.begun[nodeID(i)] = 0, 0
		}
	}
	p.Close()

	start := func(roles Roles) (*Service, config.Config) {
		own := cfg
		own.StateDir = filepath.Join(t.TempDir(), "state")
		if roles.Serve {
			listen(t)(&own)
		}
		s, err := Start(t.Context(), Options{Config: &own, Store: store, Roles: roles, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s, own
	}
	worker, _ := start(AllRoles())
	finish(t, []*Service{worker})
	_, first := start(Roles{Serve: true})
	second, other := start(Roles{Serve: true})

	eventually(t, "both servers answer", func() bool {
		_, one := pricesAsOfTheEnd(t, &first)
		_, two := pricesAsOfTheEnd(t, &other)
		return one == http.StatusOK && two == http.StatusOK
	})
	p = c.NewProducer()
	defer p.Close()
	for n := range 6 { // one write after the other, with nothing behind it
		h.begun[nodeID(0)] = n + 1
		if err := write(t.Context(), p, nodeID(0), 0, n+1); err != nil {
			t.Fatal(err)
		}
		h.acked[nodeID(0)] = n + 1
		before := h.floor()
		prices, code := pricesAsOfTheEnd(t, &first)
		if code != http.StatusOK {
			t.Fatalf("the answer is %d", code)
		}
		h.read(before, prices, "the first server")
	}

	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	const enough = 12 // reads of each server
	var done sync.WaitGroup
	for i := range items { // writers
		done.Go(func() {
			p := c.NewProducer()
			defer p.Close()
			item := nodeID(i)
			for n := h.floor()[item] + 1; ctx.Err() == nil; n++ {
				h.mu.Lock()
				h.begun[item] = n
				h.mu.Unlock()
				if err := write(t.Context(), p, item, i, n); err != nil {
					t.Error(err)
					return
				}
				h.mu.Lock()
				h.acked[item] = max(h.acked[item], n)
				h.mu.Unlock()
			}
		})
	}
	read := make([]int, 2)
	for k, server := range []config.Config{first, other} {
		for range 2 {
			done.Go(func() {
				for ctx.Err() == nil {
					before := h.floor()
					prices, code := pricesAsOfTheEnd(t, &server)
					if code == http.StatusOK {
						h.read(before, prices, fmt.Sprint("server ", k))
						h.mu.Lock()
						if read[k]++; min(read[0], read[1]) >= enough {
							stop()
						}
						h.mu.Unlock()
					} else if code != 0 && code != http.StatusServiceUnavailable {
						t.Errorf("server %d answers %d", k, code)
						return
					}
				}
			})
		}
	}
	done.Go(func() { // the second server goes, and comes back
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		s, err := Start(t.Context(), Options{Config: &other, Store: store, Roles: Roles{Serve: true},
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = s.Close() })
	})
	done.Wait()
	for _, problem := range h.problems[:min(10, len(h.problems))] {
		t.Error(problem)
	}
	if min(read[0], read[1]) < enough {
		t.Errorf("%d and %d reads were answered: too few to tell", read[0], read[1])
	}
	t.Logf("%v reads, %d writes", read, h.begun[nodeID(0)])
}

// pricesAsOfTheEnd asks a server for the prices of all items.
func pricesAsOfTheEnd(t *testing.T, cfg *config.Config) (prices map[string]int, code int) {
	t.Helper()
	code, body := ask(t, cfg, "GET", "/similar/node-039?k=1000&show=price&min_offset=end&wait=10s", "")
	if code != http.StatusOK {
		return nil, code
	}
	var r struct {
		Results []struct {
			ID         string         `json:"id"`
			Attributes map[string]int `json:"attributes"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Error(err)
	}
	prices = map[string]int{}
	for _, one := range r.Results {
		prices[one.ID] = one.Attributes["price"]
	}
	return prices, code
}
