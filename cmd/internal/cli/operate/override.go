package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest"
	"giantstream/ingest/decode"
)

// Override is 'giantstream override'.
func Override(a *command.App) *cobra.Command {
	var (
		flags        command.PipelineFlags
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
				return command.UsageError(errors.New("give records with --node and --edge"))
			}
			var eventTime time.Time
			if at != "" {
				var err error
				if eventTime, err = time.Parse(time.RFC3339Nano, at); err != nil {
					return command.UsageError(fmt.Errorf(
						"--event-time %q is not an RFC 3339 date-time like 2006-01-02T15:04:05Z", at))
				}
			}
			pipe, err := a.Open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			if err := pipe.KnowsMapping(); err != nil {
				return err
			}
			o := overrider{pipe: pipe, at: eventTime}
			messages, err := o.messages(cmd.Context(), nodes, edges)
			if err != nil {
				return err
			}
			return sendOverrides(cmd.Context(), a, pipe, messages, asJSON)
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringArrayVar(&nodes, "node", nil, "a node's `RECORD`, as the nodes topic has it in JSON (repeatable)")
	cmd.Flags().StringArrayVar(&edges, "edge", nil,
		"an edge's `RECORD`, as the edges topic has it in JSON (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was sent as JSON")
	cmd.Flags().StringVar(&at, "event-time", "", "the event `time` to send (default: that of the newest statement)")
	return cmd
}

// overrider makes the records that override sends.
type overrider struct {
	pipe *command.Pipeline
	at   time.Time // zero: of the newest statement
}

func (o *overrider) messages(ctx context.Context, nodes, edges []string) ([]kafka.Message, error) {
	mapping, limits := wiring.MappingOf(o.pipe.Config)
	ofNodes, err := decode.Nodes(mapping.Nodes, limits, o.pipe.Identity.Shards)
	if err != nil {
		return nil, err
	}
	ofEdges, err := decode.Edges(mapping.Edges, limits, o.pipe.Identity.Shards)
	if err != nil {
		return nil, err
	}
	topics := wiring.TopicsOf(o.pipe.Config)
	var out []kafka.Message
	for _, in := range []struct {
		flag, topic string
		decoder     *decode.Decoder
		records     []string
	}{{"--node", topics.Nodes, ofNodes, nodes}, {"--edge", topics.Edges, ofEdges, edges}} {
		for _, r := range in.records {
			value := in.decoder.Enclose([]byte(r))
			id, _, ok := in.decoder.Route(value)
			if !ok {
				return nil, command.UsageError(fmt.Errorf("%s %s: not a JSON object with the mapped id", in.flag, r))
			}
			at := o.at
			if at.IsZero() {
				node, err := command.FindNode(ctx, o.pipe.Store, o.pipe.Identity.Shards, id)
				if err != nil {
					return nil, fmt.Errorf("%w; name the event time with --event-time", err)
				}
				at = time.UnixMicro(node.Row.EventTime).UTC()
			}
			out = append(out, kafka.Message{Topic: in.topic, Key: []byte(id), Value: value, Time: time.Now(),
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

func sendOverrides(ctx context.Context, a *command.App, pipe *command.Pipeline, messages []kafka.Message,
	asJSON bool) (err error) {
	c, done, err := wiring.Attach(ctx, pipe.Config)
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
		return command.WriteJSON(a.Out, sent)
	}
	for _, s := range sent {
		fmt.Fprintf(a.Out, "sent to %s: %s with event time %s\n", s.Topic, console.Plain(s.Key), s.EventTime)
	}
	return nil
}
