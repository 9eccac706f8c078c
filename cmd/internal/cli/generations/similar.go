package generations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	Because    *answer.Parts  `json:"because,omitempty"`
	WhyNot     string         `json:"why_not,omitempty"`
}

// asked is a node or a text that was asked about.
type asked struct {
	ID     string  `json:"id,omitempty"`
	Text   string  `json:"text,omitempty"`
	Weight float64 `json:"weight"`
}

type matches struct {
	Generation int64   `json:"generation"`
	Like       []asked `json:"like"`
	Results    []match `json:"results"`
	// Without names a view that the texts lack, "" for none.
	Without string `json:"without,omitempty"`
}

// unlike is the weight of what is not wanted.
const unlike = -0.5

// Similar is 'giantstream similar'.
func Similar(a *command.App) *cobra.Command {
	var (
		ids, not, texts []string
		which           wantedFlags
		diversity       float64
		explain         bool
	)
	cmd := a.AboutGeneration(&cobra.Command{
		Use:   "similar ID... | similar --text TEXT | similar --questions FILE",
		Short: "Show the items most similar to some, or to a text",
		Long: `Show the nodes whose embeddings have the highest cosine with a node's, or with
that of a text, as if it were a new node's. Of several nodes and texts it is that
with the sum of their embeddings, in which those that answers are to be unlike
(--not) count by half. Changes that were committed after the generation are taken
into account.

The command reads all embeddings. To ask often, ask it a file of questions, or run
the service with --roles stream,refresh,embed,serve and ask it over HTTP.`,
		Example: `  giantstream similar net/http.Client --store ./out
  giantstream similar --text 'waterproof hiking boots' --store ./out -k 5
  giantstream similar B00004TKVY B000FH4JA2 --not B0013LVJEC --store ./out
  giantstream similar B00004TKVY --store ./out --where 'price<50 and stock>0' --show price
  giantstream similar B00004TKVY --store ./out --exclude-same parent --distinct brand
  giantstream similar B00004TKVY --store ./out --diversity 0.3
  giantstream similar B00004TKVY --store ./out --explain -k 3
  giantstream similar B00004TKVY --store ./out --json | jq -r '.results[].id'
  echo '{"id": "B00004TKVY", "k": 5}' | giantstream similar --questions - --store ./out`,
	}, func(ctx context.Context, pipe *command.Pipeline, doc *generation.Doc) error {
		want, err := which.read()
		if err != nil {
			return command.UsageError(err)
		}
		want.Diversity, want.Explain = diversity, explain
		catalog, closeCatalog, err := openCatalog(ctx, a, pipe, doc, false)
		if err != nil {
			return err
		}
		defer closeCatalog()
		if which.questions != "" {
			return askAll(ctx, a, which.questions, func(question []byte) (out any, err error) {
				err = withTexts(ctx, catalog, func() error {
					out, err = catalog.SimilarJSON(ctx, question)
					return err
				})
				return out, err
			})
		}
		found := &matches{}
		for _, id := range ids {
			found.Like = append(found.Like, asked{ID: id, Weight: 1})
		}
		for _, text := range texts {
			found.Like = append(found.Like, asked{Text: text, Weight: 1})
		}
		for _, id := range not {
			found.Like = append(found.Like, asked{ID: id, Weight: unlike})
		}
		if err := found.find(ctx, catalog, pipe, want); err != nil {
			return err
		}
		if which.asJSON {
			return command.WriteJSON(a.Out, found)
		}
		return printMatches(a, found, &which)
	})
	one := cmd.RunE
	cmd.Args = func(_ *cobra.Command, args []string) error {
		for _, id := range append(args, not...) {
			if id == "" {
				return errors.New("an id is empty")
			}
		}
		if len(args)+len(texts)+len(not) == 0 && which.questions == "" {
			return errors.New("similar to what? Give an id, or several, --text, or --questions")
		}
		return checkAlone(which.questions, len(args)+len(texts)+len(not) > 0)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids = args
		return one(cmd, nil)
	}
	cmd.Flags().StringArrayVar(&texts, "text", nil, "find what is similar to this `TEXT`; may be repeated")
	cmd.Flags().StringArrayVar(&not, "not", nil, "find what is unlike the item with this `ID`; may be repeated")
	which.add(cmd)
	cmd.Flags().Float64Var(&diversity, "diversity", 0, "from 0 to 1: how much answers are to be unlike each\n"+
		"other, by maximal marginal relevance among the 200 nearest")
	cmd.Flags().BoolVar(&explain, "explain", false, "show which views, and which n-grams of an answer's text,\n"+
		"its cosine is made of")
	return cmd
}

var errNoVector = errors.New("the external model has no vector of a text")

// find answers what is asked, and looks up the texts.
func (m *matches) find(ctx context.Context, catalog *answer.Catalog, pipe *command.Pipeline, want answer.Wanted) error {
	like := make([]answer.Like, len(m.Like))
	var texts []string
	for _, one := range m.Like {
		if one.ID == "" {
			texts = append(texts, one.Text)
		}
	}
	vectors, away := catalog.VectorsOf(ctx, texts)
	for i, one := range m.Like {
		like[i] = answer.Like{ID: one.ID, Text: one.Text, Weight: one.Weight}
		if one.ID == "" {
			like[i].Vector = vectors[one.Text]
		}
	}
	var nearest answer.Nearest
	err := withTexts(ctx, catalog, func() (err error) {
		nearest, err = catalog.Similar(like, want)
		return err
	})
	if errors.Is(err, answer.ErrUnknown) && len(like) == 1 {
		return explainUnknown(ctx, pipe, like[0].ID, err)
	}
	if err != nil {
		return err
	}
	m.Generation, m.Results = nearest.Generation, make([]match, len(nearest.Neighbours))
	if m.Without = nearest.Without; m.Without != "" {
		pipe.Log.Warn("items are compared with the texts without a view that items have", "view", m.Without,
			"because", cmp.Or(away, errNoVector))
	}
	wanted := map[string][]*string{}
	for i, n := range nearest.Neighbours {
		m.Results[i] = match{ID: n.ID, Cosine: n.Cosine, Attributes: n.Attributes, Because: n.Because,
			WhyNot: n.WhyNot}
		wanted[n.ID] = append(wanted[n.ID], &m.Results[i].Text)
	}
	for i, one := range m.Like {
		if one.ID != "" {
			wanted[one.ID] = append(wanted[one.ID], &m.Like[i].Text)
		}
	}
	return addTexts(ctx, pipe, wanted)
}

// withTexts asks, and has the texts read first if the question is for reasons.
func withTexts(ctx context.Context, catalog *answer.Catalog, ask func() error) error {
	err := ask()
	if !errors.Is(err, answer.ErrTexts) {
		return err
	}
	if _, err := catalog.Update(ctx); err != nil {
		return err
	}
	return ask()
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
	texts, err := wiring.TextModelOf(pipe.Config, pipe.Identity.Inputs, pipe.Log)
	if err != nil {
		return nil, nil, err
	}
	catalog = answer.New(answer.Options{Store: pipe.Store, Log: logview.Tail{Store: pipe.Store},
		Shards: pipe.Identity.Shards, Exact: true, Complements: complements,
		Texts:      texts,
		Attributes: wiring.AttributesOf(pipe.Config), Generation: func() *generation.Generation { return g }})
	_, err = catalog.Update(ctx)
	return catalog, closeDevice, err
}

// addTexts looks up the texts of nodes by their ids.
func addTexts(ctx context.Context, pipe *command.Pipeline, wanted map[string][]*string) error {
	return eachNode(ctx, pipe, func(r *commitlog.Row) bool {
		for _, text := range wanted[r.NodeID] {
			*text = strings.Clone(r.Text)
		}
		delete(wanted, r.NodeID)
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
	for _, one := range found.Like {
		unlike := ""
		if one.Weight < 0 {
			unlike = "not "
		}
		if one.ID != "" {
			p.Heading("%s%s", unlike, console.Plain(one.ID))
		}
		p.Line("%s", command.Shorten(one.Text, 80))
	}
	p.Line("")
	if p.Err != nil {
		return p.Err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, m := range found.Results {
		fmt.Fprintf(w, "%.3f\t%s\t%s%s\n", m.Cosine, console.Plain(m.ID), which.columns(m.Attributes),
			command.Shorten(m.Text, 80))
		reason := func(name, said string) {
			fmt.Fprintf(w, "\t  %s\t%s%s\n", name, strings.Repeat("\t", len(which.show)), said)
		}
		switch {
		case m.Because != nil:
			views, ngrams := partsLines(m.Because)
			reason("views", views)
			reason("n-grams", ngrams)
		case m.WhyNot != "":
			reason("no reasons", m.WhyNot)
		}
	}
	return w.Flush()
}

// partsLines are the parts of a cosine for people. Characters are quoted, and words are not.
func partsLines(p *answer.Parts) (views, ngrams string) {
	var v, n []string
	for _, one := range p.Views {
		v = append(v, fmt.Sprintf("%s %+.3f", one.Name, one.Cosine))
	}
	for _, one := range p.NGrams {
		text := console.Plain(one.Text)
		if one.Kind == answer.Characters {
			text = strconv.Quote(one.Text)
		}
		n = append(n, fmt.Sprintf("%s %+.3f", text, one.Cosine))
	}
	v, n = append(v, fmt.Sprintf("rounding %+.3f", p.Rounding)), append(n, fmt.Sprintf("others %+.3f", p.Others))
	return strings.Join(v, ", "), strings.Join(n, ", ")
}
