package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/config"
)

func configFromStore(a *command.App) *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "from-store STORE",
		Short: "Print the configuration file of a service that goes on with a store",
		Long: `Print the configuration file with which 'giantstream run -c' goes on with a store that
was made from files: the pipeline's name and shards, the mapping of its records, and
the settings of its newest generation. All else has its default, and comments say
what is for you to decide.`,
		Example: `  giantstream config from-store ./out > pipeline.yaml
  giantstream run -c pipeline.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := command.OfStore(args[0], set...)
			if err == nil {
				_, err = a.OpenStore(cmd.Context(), cfg) // or it holds no pipeline
			}
			if err != nil {
				return err
			}
			// What a run that ends by itself has for its own good is not of the store.
			usual := config.Default()
			cfg.Window, cfg.HTTP = usual.Window, usual.HTTP
			_, err = fmt.Fprintf(a.Out, "%s%s", fromStoreHead, cfg.YAML(fromStore(cfg)))
			return err
		},
	}
	command.RegisterSet(cmd, &set)
	return cmd
}

const fromStoreHead = `# Made by 'giantstream config from-store'. Fields that are not here have their defaults: see
# 'giantstream config example'. Without those that are, the store is refused, or its next generation
# is another one.
`

// fromStore are the comments of the file, by field.
func fromStore(cfg *config.Config) map[string]string {
	comments := map[string]string{
		"pipeline": "Name and shards are the store's for good.",
		"shards":   "",
		"store":    "Where everything is kept. A copy elsewhere serves as well: name its place.",
		"http.listen": "DECIDE who may read metrics and, with --roles stream,refresh,embed,serve, ask what is " +
			"similar.\nThis is this machine alone.",
		"train.encoder": "",
	}
	if cfg.Kafka.Embedded() {
		comments["kafka.brokers"] = "DECIDE: the broker inside the process, which no other program can reach, or " +
			"brokers of your own,\nas in [host:9092]. Their topics are others than those that the store has read: " +
			"the first start\nsays so, and 'giantstream run --accept-loss TOPICS' goes on with what is in them."
		comments["kafka.data_dir"] = ""
		comments["state_dir"] = "Beside the broker's log, where the run from files had it."
	}
	return comments
}
