package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Proxy passes TCP connections on to a server, until Poison or Cut is called.
type Proxy struct{ proxy *toxiproxy.Proxy }

// NewProxy listens on the address, with port 0 on a free one, and passes connections on to
// upstream.
func NewProxy(listen, upstream string) (*Proxy, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := toxiproxy.NewProxy(server, upstream, listen, upstream)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", upstream, err)
	}
	return &Proxy{p}, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.proxy.Listen }

// Toxic is what happens to data on the way; the names are toxiproxy's.
type Toxic struct {
	// Type is latency, bandwidth, slicer, limit_data, timeout or reset_peer.
	Type string `json:"type"`
	// Stream is upstream (requests) or downstream (answers).
	Stream string `json:"stream"`
	// Toxicity is the share of connections it happens to.
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes"`
}

// Poison applies a toxic to all connections, new and old, until Heal.
func (p *Proxy) Poison(t Toxic) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := p.proxy.Toxics.AddToxicJson(bytes.NewReader(data)); err != nil {
		return fmt.Errorf("toxic %s: %w", data, err)
	}
	return nil
}

// healTime is how long connections may take to recover.
const healTime = 5 * time.Second

// Heal removes all toxics. Connections they were on may be broken for good.
func (p *Proxy) Heal() {
	ctx, cancel := context.WithTimeout(context.Background(), healTime)
	defer cancel()
	p.proxy.Toxics.ResetToxics(ctx)
}

// Cut breaks all connections and refuses new ones until Restore.
func (p *Proxy) Cut() { p.proxy.Stop() }

// Restore listens again.
func (p *Proxy) Restore() error { return p.proxy.Start() }

// Close breaks all connections and stops listening.
func (p *Proxy) Close() { p.proxy.Stop() }
