package service

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/config"
	"giantstream/ingest/preview"
	"giantstream/sink/memstore"
)

// A service whose mapping names a field that none of the first records has consumes nothing and says which may have
// been meant. A topic that is empty, one record that has the field, or people let it begin; and once it has committed,
// what its topics have left does not matter.
func TestMisspeltFieldsAreNoticedBeforeAnythingIsConsumed(t *testing.T) {
	const node, edge = `{"sku":"n%d","description":"item %d of a shelf"}`, `{"from":"n%d","to":"n1"}`
	mapped := func(c *config.Config) {
		c.Ingest.Nodes.ID, c.Ingest.Nodes.Text = "sku", config.List{"description"}
		c.Ingest.Edges.Src, c.Ingest.Edges.Dst = "from", "to"
	}
	for name, test := range map[string]struct {
		nodes, edges []string
		change       func(*config.Config)
		allow        bool
		want         []string // nil for a start
	}{
		"right": {nodes: []string{node}, edges: []string{edge}, change: func(*config.Config) {}},
		"text": {nodes: []string{node}, edges: []string{edge},
			change: func(c *config.Config) { c.Ingest.Nodes.Text = config.List{"descripti"} },
			want:   []string{`nodes.text`, `"descripti"`, `did you mean "description"?`, "--allow-unmatched"}},
		"far end and id": {nodes: []string{node}, edges: []string{edge},
			change: func(c *config.Config) { c.Ingest.Edges.Dst, c.Ingest.Nodes.ID = "too", "skus" },
			want:   []string{"edges.dst", `"too"`, "nodes.id", `did you mean "sku"?`}},
		"most are dead letters": {nodes: []string{node},
			change: func(c *config.Config) { c.Ingest.Nodes.Attributes = config.List{"price:number=description"} },
			want:   []string{"20 of the 20 records", "dead letters", "attribute price is", "must be a number"}},
		"allowed": {nodes: []string{node}, edges: []string{edge}, allow: true,
			change: func(c *config.Config) { c.Ingest.Nodes.Text = config.List{"descripti"} }},
		"some have it": {nodes: []string{node, `{"sku":"n%d","descripti":"item %d"}`},
			change: func(c *config.Config) { c.Ingest.Nodes.Text = config.List{"descripti"} }},
		"empty topics": {change: func(c *config.Config) { c.Ingest.Nodes.Text = config.List{"descripti"} }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollowed(t)
			f.cfg.Ingest.Nodes.Attributes, f.cfg.Sinks.Attributes = nil, nil
			mapped(&f.cfg)
			store := &memstore.Store{}
			p := f.client.NewProducer()
			for topic, values := range map[string][]string{f.cfg.Kafka.Topics.Nodes: test.nodes,
				f.cfg.Kafka.Topics.Edges: test.edges} {
				for i := range 20 {
					for _, value := range values {
						key := fmt.Sprint("n", i)
						text := strings.ReplaceAll(value, "%d", fmt.Sprint(i))
						err := p.Send(t.Context(), kafka.Message{Topic: topic, Key: []byte(key), Value: []byte(text)})
						if err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := errors.Join(p.Flush(t.Context()), p.Close()); err != nil {
				t.Fatal(err)
			}
			run := func(change func(*config.Config), allow bool) error {
				cfg := f.cfg
				change(&cfg)
				s, err := Start(t.Context(), Options{Config: &cfg, Store: store, AllowUnmatched: allow,
					Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					return err
				}
				return errors.Join(s.Drain(t.Context()), s.Close())
			}
			err := run(test.change, test.allow)
			if test.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if test.allow { // it has committed: the next start asks nothing
					err = run(test.change, false)
				}
				if err != nil {
					t.Errorf("a restart: %v", err)
				}
				return
			}
			if !errors.Is(err, preview.ErrMapping) {
				t.Fatalf("started: %v", err)
			}
			for _, words := range test.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in: %v", words, err)
				}
			}
			// Nothing was consumed, and nothing binds the store to the mistake.
			if err := run(func(*config.Config) {}, false); err != nil {
				t.Errorf("with the mapping corrected: %v", err)
			}
		})
	}
}
