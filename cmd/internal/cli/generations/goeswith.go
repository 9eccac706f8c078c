package generations

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/train/answer"
	"giantstream/train/generation"
)

// complement is a node that goes with a basket.
type complement struct {
	ID      string          `json:"id"`
	Score   float64         `json:"score"`
	Support int64           `json:"support"`
	Partner string          `json:"partner,omitempty"`
	Because *answer.Because `json:"because,omitempty"`
	Text    string          `json:"text,omitempty"`

	Attributes map[string]any `json:"attributes,omitempty"`
}

type complements struct {
	Generation int64        `json:"generation"`
	IDs        []string     `json:"ids"`
	Results    []complement `json:"results"`
}

// GoesWith is 'giantstream goes-with'.
func GoesWith(a *command.App) *cobra.Command {
	var (
		ids     []string
		which   wantedFlags
		explain bool
	)
	cmd := a.AboutGeneration(&cobra.Command{
		Use:   "goes-with ID... | goes-with --questions FILE",
		Short: "Show what goes with an item, or with a basket of items",
		Long: `Show which nodes are ordered by those who order all of the given ones, from the
orders at the generation's cut. A line has the score, how many orders have the
node and one of the given ones, and the given node that says it most. The score
adds up what the given nodes say, and 0.1 times the cosine of the embeddings with
their mean: nodes without orders are answered by that alone.

The command reads all embeddings. To ask often, ask it a file of questions, or run
the service with --roles stream,refresh,embed,serve and ask it over HTTP.`,
		Example: `  giantstream goes-with B00004TKVY --store ./out
  giantstream goes-with B00004TKVY B000FH4JA2 --store ./out -k 5
  giantstream goes-with B00004TKVY B000FH4JA2 --store ./out --explain --distinct brand
  giantstream goes-with B00004TKVY --store ./out --json | jq -r '.results[].id'`,
	}, func(ctx context.Context, pipe *command.Pipeline, doc *generation.Doc) error {
		want, err := which.read()
		if err != nil {
			return command.UsageError(err)
		}
		want.Explain = explain
		catalog, closeCatalog, err := openCatalog(ctx, a, pipe, doc, true)
		if err != nil {
			return err
		}
		defer closeCatalog()
		if which.questions != "" {
			return askAll(ctx, a, which.questions, catalog.GoesWithJSON)
		}
		found, err := findComplements(ctx, catalog, pipe, ids, want)
		if err != nil {
			return err
		}
		if which.asJSON {
			return command.WriteJSON(a.Out, found)
		}
		return printComplements(a, found, &which)
	})
	one := cmd.RunE
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 && which.questions == "" {
			return errors.New("goes with what? Give an id, or several, or --questions")
		}
		return checkAlone(which.questions, len(args) > 0)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids = args
		return one(cmd, nil)
	}
	which.add(cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "show what each item says, and the text, which add up to the score")
	return cmd
}

func findComplements(ctx context.Context, catalog *answer.Catalog, pipe *command.Pipeline, ids []string,
	want answer.Wanted) (*complements, error) {
	basket, err := catalog.GoesWith(ids, want)
	if errors.Is(err, answer.ErrUnknown) && len(ids) == 1 {
		return nil, explainUnknown(ctx, pipe, ids[0], err)
	}
	if err != nil {
		return nil, err
	}
	found := &complements{Generation: basket.Generation, IDs: ids, Results: make([]complement, len(basket.Items))}
	wanted := map[string][]*string{}
	for i, c := range basket.Items {
		found.Results[i] = complement{ID: c.ID, Score: c.Score, Support: c.Support, Partner: c.Partner,
			Because: c.Because, Attributes: c.Attributes}
		wanted[c.ID] = []*string{&found.Results[i].Text}
	}
	return found, addTexts(ctx, pipe, wanted)
}

func printComplements(a *command.App, found *complements, which *wantedFlags) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, c := range found.Results {
		said := "by text"
		if c.Partner != "" {
			said = fmt.Sprintf("%s, %s", command.Plural(int(c.Support), "order"), console.Plain(c.Partner))
		}
		fmt.Fprintf(w, "%.3f\t%s\t%s\t%s%s\n", c.Score, console.Plain(c.ID), said, which.columns(c.Attributes),
			command.Shorten(c.Text, 80))
		if c.Because != nil {
			for _, r := range c.Because.Orders {
				fmt.Fprintf(w, "  %+.3f\t  %s\t%s\n", r.Score, console.Plain(r.ID), command.Plural(r.Support, "order"))
			}
			fmt.Fprintf(w, "  %+.3f\t  text\t\n", c.Because.Text)
		}
	}
	return w.Flush()
}
