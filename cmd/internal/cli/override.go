package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest"
	"giantstream/ingest/decode"
)

func (a *app) override() *cobra.Command {
	var (
		flags        pipelineFlags
		nodes, edges []string
		at           string
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:   "override",
		Short: "Send records that win over statements with a wrong event time in the future",
		Long: `A statement whose event time is wrong and far ahead wins over every correction
until then. Override sends records with the event time of the newest statement
about their node (of an edge: about its source), which the store has; of equal
event times the later record wins. The event time stays ahead, so the next
correction of the same node is an override, too. ingest.max_future keeps such
statements out in the first place.`,
		Example: `  giantstream override -c pipeline.yaml --node '{"id":"a","text":"what is right"}'
  giantstream override --store ./out --edge '{"src":"a","dst":"b","deleted":true}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(nodes)+len(edges) == 0 {
				return usageError{errors.New("give records with --node and --edge")}
			}
			var eventTime time.Time
			if at != "" {
				var err error
				if eventTime, err = time.Parse(time.RFC3339Nano, at); err != nil {
					return usageError{fmt.Errorf(
						"--event-time %q is not an RFC 3339 date-time like 2006-01-02T15:04:05Z", at)}
				}
			}
			pipe, err := a.open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			o := overrider{pipe: pipe, at: eventTime}
			messages, err := o.messages(cmd.Context(), nodes, edges)
			if err != nil {
				return err
			}
			return a.sendOverrides(cmd.Context(), pipe, messages, asJSON)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringArrayVar(&nodes, "node", nil, "a node's `RECORD`, as the nodes topic has it in JSON (repeatable)")
	cmd.Flags().StringArrayVar(&edges, "edge", nil,
		"an edge's `RECORD`, as the edges topic has it in JSON (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was sent as JSON")
	cmd.Flags().StringVar(&at, "event-time", "", "the event `time` to send (default: that of the newest statement)")
	return cmd
}

// overrider makes the records that override sends.
type overrider struct {
	pipe *pipeline
	at   time.Time // zero: of the newest statement
}

func (o *overrider) messages(ctx context.Context, nodes, edges []string) ([]kafka.Message, error) {
	mapping, limits := wiring.MappingOf(o.pipe.cfg)
	ofNodes, err := decode.Nodes(mapping.Nodes, limits, o.pipe.id.Shards)
	if err != nil {
		return nil, err
	}
	ofEdges, err := decode.Edges(mapping.Edges, limits, o.pipe.id.Shards)
	if err != nil {
		return nil, err
	}
	topics := wiring.TopicsOf(o.pipe.cfg)
	var out []kafka.Message
	for _, in := range []struct {
		flag, topic string
		decoder     *decode.Decoder
		records     []string
	}{{"--node", topics.Nodes, ofNodes, nodes}, {"--edge", topics.Edges, ofEdges, edges}} {
		for _, r := range in.records {
			id, _, ok := in.decoder.Route([]byte(r))
			if !ok {
				return nil, usageError{fmt.Errorf("%s %s: not a JSON object with the mapped id", in.flag, r)}
			}
			at := o.at
			if at.IsZero() {
				node, err := findNode(ctx, o.pipe.store, o.pipe.id.Shards, id)
				if err != nil {
					return nil, fmt.Errorf("%w; name the event time with --event-time", err)
				}
				at = time.UnixMicro(node.Row.EventTime).UTC()
			}
			out = append(out, kafka.Message{Topic: in.topic, Key: []byte(id), Value: []byte(r), Time: time.Now(),
				Headers: []kafka.Header{{Key: ingest.EventTimeHeader, Value: []byte(at.Format(time.RFC3339Nano))}}})
		}
	}
	return out, nil
}

// sentOverride is a record that override has sent.
type sentOverride struct {
	Topic     string `json:"topic"`
	Key       string `json:"key"`
	EventTime string `json:"event_time"`
}

func (a *app) sendOverrides(ctx context.Context, pipe *pipeline, messages []kafka.Message, asJSON bool) (err error) {
	c, done, err := wiring.Attach(ctx, pipe.cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	p := c.NewProducer()
	defer p.Close() //nolint:errcheck // Flush reports what matters
	if err := p.Send(ctx, messages...); err != nil {
		return err
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	sent := make([]sentOverride, len(messages))
	for i, m := range messages {
		sent[i] = sentOverride{m.Topic, string(m.Key), string(m.Headers[0].Value)}
	}
	if asJSON {
		return writeJSON(a.out, sent)
	}
	for _, s := range sent {
		fmt.Fprintf(a.out, "sent to %s: %s with event time %s\n", s.Topic, console.Plain(s.Key), s.EventTime)
	}
	return nil
}
