package operate

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
)

// letterFilter holds the flags that select dead letters.
type letterFilter struct {
	code, topic      string
	since, olderThan time.Duration
}

func (f *letterFilter) register(c *cobra.Command) {
	c.Flags().StringVar(&f.code, "code", "", "only letters with this code, such as bad_json")
	c.Flags().StringVar(&f.topic, "topic", "", "only records of this topic")
	c.Flags().DurationVar(&f.since, "since", 0, "only letters of the last `duration`, such as 24h")
	c.Flags().DurationVar(&f.olderThan, "older-than", 0, "only letters that are older than this `duration`")
}

func (f *letterFilter) filter() deadletter.Filter {
	out := deadletter.Filter{Code: decode.Code(f.code), Topic: f.topic}
	if f.since > 0 {
		out.Since = time.Now().Add(-f.since)
	}
	if f.olderThan > 0 {
		out.Before = time.Now().Add(-f.olderThan)
	}
	return out
}

// DLQ is 'giantstream dlq' with its subcommands.
func DLQ(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List dead letters, send them through again, or dismiss them",
		Example: `  giantstream dlq list --store ./out
  giantstream dlq replay --store ./out --code text_too_large
  giantstream dlq dismiss --store ./out --code self_loop --reason 'known: the shop links items to themselves'`,
		Long: `Dead letters are records that could not be applied, kept with their origin, the
reason and their original bytes. The embedded broker's can be read while no
'giantstream run' has it.`,
	}
	cmd.AddCommand(dlqList(a), dlqReplay(a), dlqDismiss(a))
	return cmd
}

func dlqList(a *command.App) *cobra.Command {
	var (
		flags     command.PipelineFlags
		filter    letterFilter
		all       bool
		dismissed bool
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the dead letters that are open: neither sent again nor dismissed since",
		Example: `  giantstream dlq list -c pipeline.yaml
  giantstream dlq list -c pipeline.yaml --dismissed
  giantstream dlq list --store ./out --code bad_json --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withClient(a, cmd, &flags, func(cfg *config.Config, c *client.Client) error {
				enc := json.NewEncoder(a.Out)
				n := 0
				topic := wiring.TopicsOf(cfg).DeadLetters
				selected := filter.filter()
				selected.All, selected.Dismissed = all, dismissed
				for l, err := range deadletter.List(cmd.Context(), c, topic, selected) {
					if err != nil {
						return err
					}
					n++
					if asJSON {
						err = enc.Encode(map[string]any{"origin": l.Origin.String(),
							"place": l.Place().String(), "code": l.Code,
							"message": l.Message, "key": string(l.Key), "value": l.Value,
							"size": l.Size, "time": l.Time, "at": l.At, "replay_of": l.ReplayOf,
							"open": l.Open(), "dismissed": !l.Dismissed.IsZero(), "reason": l.Reason})
					} else {
						_, err = fmt.Fprintf(a.Out, "%s\t%s\t%s\t%s%s\n", console.Plain(l.Origin.String()),
							console.Plain(string(l.Code)), console.Plain(l.Message), excerpt(l.Value), state(&l))
					}
					if err != nil {
						return err
					}
				}
				if n == 0 && !asJSON {
					fmt.Fprintln(a.Err, "no dead letters")
				}
				return nil
			})
		},
	}
	flags.Register(cmd)
	filter.register(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "list also those whose records were sent again or that are dismissed")
	cmd.Flags().BoolVar(&dismissed, "dismissed", false, "list those that are dismissed, and why")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object per letter; values are base64")
	return cmd
}

// state says what became of a letter's record, "" for nothing yet.
func state(l *deadletter.Letter) (s string) {
	if l.ReplayOf != "" {
		s = "\tfailed again, was " + console.Plain(l.ReplayOf)
	}
	if !l.Replayed.IsZero() {
		s += "\tsent again " + l.Replayed.UTC().Format(time.DateTime)
	}
	if !l.Dismissed.IsZero() {
		s += "\tdismissed " + l.Dismissed.UTC().Format(time.DateTime) + ": " + console.Plain(l.Reason)
	}
	return s
}

// LetterCodes are the values of --code.
func LetterCodes() (names []string) {
	for _, code := range decode.Codes() {
		names = append(names, string(code))
	}
	return names
}

// excerpt returns the beginning of a value, on one line.
func excerpt(value []byte) string {
	const most = 80
	s := console.Plain(string(value[:min(len(value), most)]))
	if len(value) > most {
		s += "…"
	}
	return s
}

func dlqReplay(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		filter letterFilter
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Send dead letters to their topics again, with their own key, value and time",
		Example: `  giantstream dlq replay -c pipeline.yaml --code text_too_large
  giantstream dlq replay --store ./out --since 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withClient(a, cmd, &flags, func(cfg *config.Config, c *client.Client) error {
				mapping, limits := wiring.MappingOf(cfg)
				key, err := deadletter.NewKeyer(wiring.TopicsOf(cfg), mapping, limits)
				if err != nil {
					return err
				}
				done, err := deadletter.Replay(cmd.Context(), c, wiring.TopicsOf(cfg), filter.filter(), key,
					time.Now)
				if err != nil {
					return err
				}
				if asJSON {
					return command.WriteJSON(a.Out, done)
				}
				_, err = fmt.Fprintf(a.Out,
					"sent %s again; %d were cut when they were written and cannot be sent\n",
					command.Plural(done.Sent, "record"), done.Truncated)
				if done.Rows > 0 && err == nil {
					_, err = fmt.Fprintf(a.Out, "skipped %s that are no CSV rows: correct them there, and run again\n",
						command.Plural(done.Rows, "line of a file", "lines of files"))
				}
				if done.Foreign > 0 && err == nil {
					_, err = fmt.Fprintf(a.Out,
						"skipped %d records on the dead-letter topic that are not dead letters "+
							"(see dlq list --code %s)\n", done.Foreign, decode.Foreign)
				}
				if done.Elsewhere > 0 && err == nil {
					_, err = fmt.Fprintf(a.Out, "skipped %d dead letters of topics that this pipeline does not read\n",
						done.Elsewhere)
				}
				return err
			})
		},
	}
	flags.Register(cmd)
	filter.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func dlqDismiss(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		filter letterFilter
		reason string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "dismiss",
		Short: "Close dead letters whose records nobody needs, with the reason",
		Long: `Close open dead letters without sending their records again, and record why. All that
the flags select are closed: look at the same flags with 'dlq list' first. They stay
on the topic, 'dlq list --dismissed' shows them, and 'status' counts them apart.`,
		Example: `  giantstream dlq dismiss -c pipeline.yaml --code self_loop --reason 'items that link to themselves'
  giantstream dlq dismiss --store ./out --older-than 720h --reason 'from before the mapping was corrected'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := deadletter.CheckReason(reason); err != nil {
				return command.UsageError(fmt.Errorf("--reason: %w", err))
			}
			return withClient(a, cmd, &flags, func(cfg *config.Config, c *client.Client) error {
				n, err := deadletter.Dismiss(cmd.Context(), c, wiring.TopicsOf(cfg).DeadLetters, filter.filter(),
					reason, time.Now)
				if err != nil {
					return err
				}
				if asJSON {
					return command.WriteJSON(a.Out, map[string]int{"dismissed": n})
				}
				_, err = fmt.Fprintf(a.Out, "dismissed %s\n", command.Plural(n, "dead letter"))
				return err
			})
		},
	}
	flags.Register(cmd)
	filter.register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT`: why nobody needs these records")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// withClient runs do with a connection to the pipeline's cluster.
func withClient(a *command.App, cmd *cobra.Command, flags *command.PipelineFlags,
	do func(*config.Config, *client.Client) error) error {
	pipe, err := a.Open(cmd.Context(), flags)
	if err == nil {
		err = pipe.KnowsMapping()
	}
	if err != nil {
		return err
	}
	cfg := pipe.Config
	c, done, err := wiring.Attach(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	err = do(cfg, c)
	if closeErr := done(); err == nil {
		err = closeErr
	}
	return err
}
