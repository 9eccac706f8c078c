package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/owner"
)

// Claim is 'giantstream claim'.
func Claim(a *command.App) *cobra.Command {
	var (
		flags command.PipelineFlags
		from  string
	)
	cmd := &cobra.Command{
		Use:   "claim --from ID",
		Short: "Take topics from another pipeline",
		Long: `Make this pipeline the owner of its topics of embeddings (kafka.topics.embeddings and
sink.canary_topic) and of its keyed topics (ingest.repartition), which belong to the
pipeline with the id ID. A pipeline owns a topic that it was the first to write to,
and no other one writes there. After the store was removed and filled anew, a
pipeline has another id.

Stop the other pipeline first. What it has published stays on the topic, also of
nodes that this pipeline does not have: deleting the topic instead leaves nothing,
and the next start creates it. Tables of 'giantstream sink' follow with 'sink
refill --from ID'.`,
		Example: "  giantstream claim -c pipeline.yaml --from 8a41c07be25d9f3c",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if from == "" {
				return command.UsageError(errors.New("from which pipeline? Give its id with --from; the message that " +
					"refuses the topic has it"))
			}
			ctx := cmd.Context()
			pipe, err := a.Open(ctx, &flags)
			if err != nil {
				return err
			}
			mine, err := wiring.OwnerOf(ctx, pipe.Config, pipe.Store, pipe.Identity)
			if err != nil {
				return err
			}
			c, detach, err := wiring.Attach(ctx, pipe.Config)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, detach()) }()
			topics := wiring.TopicsOf(pipe.Config)
			owned := []string{topics.Embeddings}
			if topics.Canary != "" {
				owned = append(owned, topics.Canary)
			}
			for _, topic := range append(owned, topics.Filled()...) {
				if err := owner.Take(ctx, c, topic, mine, from); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(a.Out, "%s belongs to pipeline %s\n", topic, mine); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the `ID` of the pipeline that the topics belong to")
	return cmd
}
