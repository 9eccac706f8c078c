package ingesting

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/ingest/decode"
	"giantstream/ingest/external"
)

// externalModel asks a model behind a URL for the vectors of texts. Its methods do nothing without a model.
type externalModel struct {
	in     *Ingest
	client *external.Client // nil for a process that does not stream
	group  string
	cached atomic.Int64
}

// open names the consumer group by all that decides what is asked: the model and its topic, the topic of nodes as it
// was created, and how its records become texts. With another of these, all texts are looked at again.
func (e *externalModel) open(ctx context.Context) error {
	if e.in.Topics.External == "" {
		return nil
	}
	if e.client != nil {
		e.client.GiveUp = e.in.finishing.Load
		e.register(e.in.Registry)
	}
	nodes, err := e.in.Groups.Client.Identify(ctx, e.in.Topics.Nodes)
	if err != nil {
		return err
	}
	m := &e.in.Feeds.Mapping.Nodes
	what := fmt.Sprintf("%q", []any{e.in.Topics.External, nodes[e.in.Topics.Nodes].ID, m.Debezium, m.ID, m.Text,
		m.StripHTML, m.EventTime, m.Deleted})
	sum := sha256.Sum256([]byte(what))
	e.group = e.in.Groups.Group + "-external-" + hex.EncodeToString(sum[:4])
	return nil
}

// run asks for vectors until ctx ends.
func (e *externalModel) run(ctx context.Context) error {
	if e.client == nil {
		return nil
	}
	in := e.in
	return in.Groups.Explain(ctx, e.group, external.Fill(ctx, external.FillOptions{Brokers: in.Groups.Client,
		Model: e.client, From: in.Topics.Nodes, To: in.Topics.External, Group: e.group,
		Protocol: in.Groups.Protocol(false), SessionTimeout: in.Groups.SessionTimeout,
		Decoder: func() (*decode.Decoder, error) {
			d, err := in.Feeds.Decoder(in.Topics.Nodes, in.Config.Shards)
			if err == nil {
				d.LimitFuture(in.Feeds.MaxFuture, in.Feeds.Clock)
			}
			return d, err
		},
		Translator: in.Feeds.Translators[in.Topics.Nodes], Cached: &e.cached, Log: in.Log}))
}

// lag tells each, for each partition of the nodes, where its records end and for how many of them no vector was asked
// yet.
func (e *externalModel) lag(ctx context.Context, each func(of string, partition int, end, open int64)) error {
	if e.in.Topics.External == "" {
		return nil
	}
	return external.Lag(ctx, e.in.Groups.Client, e.in.Topics.Nodes, e.group, each)
}

// waits says that the model has failed for long, "" if it has not. Texts and links go on without it, and so do
// answers: it is a reason to look, once it is no hiccup.
func (e *externalModel) waits() string {
	if e.client == nil {
		return ""
	}
	since, err := e.client.Err()
	if err == nil || time.Since(since) < stalled {
		return ""
	}
	return fmt.Sprintf("the external model has failed for %v, and texts wait for their vectors: %v",
		time.Since(since).Round(time.Second), err)
}

func (e *externalModel) register(r prometheus.Registerer) {
	counts := &e.client.Counts
	for name, c := range map[string]struct {
		help string
		load func() float64
	}{
		"giantstream_external_requests_total": {"Requests to the external model.", read(&counts.Requests)},
		"giantstream_external_failures_total": {"Requests to the external model that failed.", read(&counts.Failures)},
		"giantstream_external_texts_total":    {"Texts that the external model gave a vector.", read(&counts.Texts)},
		"giantstream_external_cut_total": {"Texts of which the external model has taken the beginning alone.",
			read(&counts.Cut)},
		"giantstream_external_without_total": {"Texts without a vector of the external model.", read(&counts.Without)},
		"giantstream_external_cached_total":  {"Texts that were stated again and had their vector.", read(&e.cached)},
		"giantstream_external_wait_seconds_total": {"How long requests waited for the rate, or because the " +
			"endpoint asked for it.", func() float64 {
			return time.Duration(counts.Waited.Load()).Seconds()
		}},
	} {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help}, c.load))
	}
}

func read(n *atomic.Int64) func() float64 { return func() float64 { return float64(n.Load()) } }
