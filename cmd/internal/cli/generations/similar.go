package generations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/stream/commitlog"
	"giantstream/train/answer"
	"giantstream/train/generation"
)

// match is a node found near another, or near a text.
type match struct {
	ID     string  `json:"id"`
	Cosine float32 `json:"cosine"`
	Text   string  `json:"text,omitempty"`

	Attributes map[string]any `json:"attributes,omitempty"`
}

type matches struct {
	Generation int64   `json:"generation"`
	ID         string  `json:"id,omitempty"` // of the query
	Text       string  `json:"text,omitempty"`
	Results    []match `json:"results"`
}

// Similar is 'giantstream similar'.
func Similar(a *command.App) *cobra.Command {
	var (
		text   string
		which  wantedFlags
		asJSON bool
	)
	var ids []string
	cmd := a.AboutGeneration(&cobra.Command{
		Use:   "similar ID | similar --text TEXT",
		Short: "Show the items most similar to one, or to a text",
		Long: `Show the nodes whose embeddings have the highest cosine with a node's, or with
that of a text, as if it were a new node's. Changes that were committed after
the generation are taken into account.

The command reads all embeddings. To ask often, run the service with
--roles stream,refresh,embed,serve and ask it over HTTP.`,
		Example: `  giantstream similar net/http.Client --store ./out
  giantstream similar --text 'waterproof hiking boots' --store ./out -k 5
  giantstream similar B00004TKVY --store ./out --where 'price<50 and stock>0' --show price
  giantstream similar B00004TKVY --store ./out --json | jq -r '.results[].id'`,
	}, func(ctx context.Context, pipe *command.Pipeline, doc *generation.Doc) error {
		want, err := which.read()
		if err != nil {
			return command.UsageError(err)
		}
		catalog, closeCatalog, err := openCatalog(ctx, a, pipe, doc, false)
		if err != nil {
			return err
		}
		defer closeCatalog()
		found := matches{Text: text}
		var nearest answer.Nearest
		if len(ids) > 0 {
			found.ID = ids[0]
			nearest, err = catalog.ByID(ids[0], want)
		} else {
			nearest, err = catalog.ByText(text, want)
		}
		if errors.Is(err, answer.ErrUnknown) {
			return explainUnknown(ctx, pipe, ids[0], err)
		}
		if err != nil {
			return err
		}
		found.Generation, found.Results = nearest.Generation, make([]match, len(nearest.Neighbours))
		for i, n := range nearest.Neighbours {
			found.Results[i] = match{ID: n.ID, Cosine: n.Cosine, Attributes: n.Attributes}
		}
		wanted := map[string]*string{}
		if found.ID != "" {
			wanted[found.ID] = &found.Text
		}
		for i := range found.Results {
			wanted[found.Results[i].ID] = &found.Results[i].Text
		}
		if err := addTexts(ctx, pipe, wanted); err != nil {
			return err
		}
		if asJSON {
			return command.WriteJSON(a.Out, found)
		}
		return printMatches(a, &found, &which)
	})
	one := cmd.RunE
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("%d ids; ask for one at a time (quote an id with spaces)", len(args))
		case len(args) == 1 && text != "":
			return errors.New("an id and --text; ask for one of the two")
		case len(args) == 0 && text == "":
			return errors.New("similar to what? Give an id, or --text")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids = args
		return one(cmd, nil)
	}
	cmd.Flags().StringVar(&text, "text", "", "find what is similar to this `TEXT`")
	which.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with whole texts")
	return cmd
}

// openCatalog reads the embeddings of a generation and what came after it, and with complements what goes with what.
func openCatalog(ctx context.Context, a *command.App, pipe *command.Pipeline, doc *generation.Doc, complements bool) (
	catalog *answer.Catalog, closeDevice func(), err error) {
	closeDevice, err = a.OpenDevice(pipe.Workplace)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			closeDevice()
		}
	}()
	g, err := generation.Open(ctx, pipe.Store, doc, pipe.Device)
	if err != nil {
		return nil, nil, err
	}
	catalog = answer.New(answer.Options{Store: pipe.Store, Log: logview.Tail{Store: pipe.Store},
		Shards: pipe.Identity.Shards, Exact: true, Complements: complements,
		Attributes: wiring.AttributesOf(pipe.Config), Generation: func() *generation.Generation { return g }})
	_, err = catalog.Update(ctx)
	return catalog, closeDevice, err
}

// addTexts looks up the texts of nodes by their ids.
func addTexts(ctx context.Context, pipe *command.Pipeline, wanted map[string]*string) error {
	return eachNode(ctx, pipe, func(r *commitlog.Row) bool {
		if text, ok := wanted[r.NodeID]; ok {
			*text = strings.Clone(r.Text)
			delete(wanted, r.NodeID)
		}
		return len(wanted) > 0
	})
}

// eachNode calls f with the newest row of each node, until it returns false.
func eachNode(ctx context.Context, pipe *command.Pipeline, f func(*commitlog.Row) bool) error {
	cut, err := commitlog.CurrentCut(ctx, pipe.Store, pipe.Identity.Shards)
	if err != nil {
		return err
	}
	for shard := range pipe.Identity.Shards {
		for r, err := range cut.Facts(ctx, pipe.Store, shard) {
			if err != nil {
				return err
			}
			if !r.Deleted && !f(&r) {
				return nil
			}
		}
	}
	return nil
}

// explainUnknown adds to an error ids that are like the one that does not exist: first those that differ in case only.
func explainUnknown(ctx context.Context, pipe *command.Pipeline, id string, err error) error {
	const most = 5
	var same, like []string
	lower := strings.ToLower(id)
	scan := eachNode(ctx, pipe, func(r *commitlog.Row) bool {
		switch l := strings.ToLower(r.NodeID); {
		case l == lower:
			same = append(same, fmt.Sprintf("%q", r.NodeID))
		case len(like) < most && strings.Contains(l, lower):
			like = append(like, fmt.Sprintf("%q", r.NodeID))
		}
		return len(same) < most
	})
	slices.Sort(like)
	same = append(same, like...)
	if scan != nil || len(same) == 0 {
		return err
	}
	return fmt.Errorf("%w. Did you mean %s?", err, strings.Join(same[:min(most, len(same))], ", "))
}

func printMatches(a *command.App, found *matches, which *wantedFlags) error {
	p := &command.Printer{Out: a.Out}
	if found.ID != "" {
		p.Heading("%s", console.Plain(found.ID))
	}
	p.Line("%s", shortened(found.Text))
	p.Line("")
	if p.Err != nil {
		return p.Err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, m := range found.Results {
		fmt.Fprintf(w, "%.3f\t%s\t%s%s\n", m.Cosine, console.Plain(m.ID), which.columns(m.Attributes),
			shortened(m.Text))
	}
	return w.Flush()
}

// shortened is the beginning of a text, on one line.
func shortened(text string) string {
	const most = 80
	text = console.Plain(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
