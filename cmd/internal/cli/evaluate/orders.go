package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/featurize/pairs"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation/eval/completion"
)

// completed is what 'giantstream evaluate orders' prints.
type completed struct {
	// Orders count, Items are what they have. Asked is how many newer ones were asked about, Unknown of these hide an
	// item that no order which counts has.
	Orders  int                  `json:"orders"`
	Items   int                  `json:"items"`
	Asked   int                  `json:"asked"`
	Unknown int                  `json:"unknown"`
	Figures []completion.Figures `json:"figures"`
}

func ordersCommand(a *command.App) *cobra.Command {
	var (
		flags   command.PipelineFlags
		newest  float64
		windows int
		embed   bool
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "orders",
		Short: "Hide an item of each of the newest orders, and ask what goes with the others",
		Long: `Count all orders but the newest, hide an item of each of these, and ask what goes
with the other items, and with one of them: is the hidden item among the ten best?

  popularity             the items of most orders, whatever is asked
  cosine of the counts   the sum of the cosines with the items that are asked about
  EASE, of all items     a regression of each item on all others (up to 5,000 items)
  goes-with              what the pipeline answers, but for the part of the texts

With --windows the newest orders are asked about window by window, before they
count: how good answers are that follow the orders ("current", as those of the role
serve), and how they age if nothing follows ("frozen").

With --embeddings besides, embeddings are asked which links a window makes, before
it counts: those of a generation of all orders before it ("current"), those of a
generation of the orders before the first window as /similar serves it, with rows of
orders that follow ("following"), and as it was ("frozen"). That builds a generation
a window, with the configuration's encoder. Items that are first ordered in a window
are known from then on. Texts are those of today, and so are stated links. Asked are
pairs of at least 5 orders of a window with a normalised PMI of 0.3, the 10 best of an
item; fewer than 30 are "too few".

Otherwise the texts are not asked: a generation has learned from the newest orders.
At most 5,000 orders are asked about. Items that are no nodes count, too. The
command holds all orders in memory. Nothing is stored.`,
		Example: `  giantstream evaluate orders --store ./out
  giantstream evaluate orders --store ./out --newest 0.4 --windows 6
  giantstream evaluate orders --store ./out --newest 0.4 --windows 6 --embeddings
  giantstream evaluate orders -c pipeline.yaml --newest 0.05 --json | jq '.figures[]'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(newest > 0 && newest < 1) {
				return command.UsageError(fmt.Errorf("--newest is %g; it must be above 0 and below 1", newest))
			}
			if windows < 0 {
				return command.UsageError(fmt.Errorf("--windows is %d; it must be 0 or more", windows))
			}
			if embed && windows == 0 {
				return command.UsageError(errors.New("--embeddings asks window by window; give --windows, too"))
			}
			pipe, err := a.Open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			orders, err := readOrders(cmd.Context(), pipe)
			if err != nil {
				return err
			}
			if windows > 0 {
				var e *ager
				if embed {
					if e, err = newAger(a, pipe); err != nil {
						return err
					}
					defer e.close()
				}
				out, err := age(cmd.Context(), orders, newest, windows, pipe.Config.Train.Seed,
					pipe.Config.Train.Threads, e)
				pipe.Progress.Done()
				switch {
				case err != nil:
					return err
				case asJSON:
					return command.WriteJSON(a.Out, out)
				}
				return printAged(a, out)
			}
			out, err := complete(orders, newest, pipe.Config.Train.Seed, pipe.Config.Train.Threads)
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, out)
			}
			return printCompleted(a, out)
		},
	}
	flags.Register(cmd)
	cmd.Flags().Float64Var(&newest, "newest", 0.1, "share of the orders, the newest, that are asked about")
	cmd.Flags().IntVar(&windows, "windows", 0,
		"split the time of the newest orders into as many windows, and ask about each before it counts")
	cmd.Flags().BoolVar(&embed, "embeddings", false,
		"with --windows: ask embeddings, too, which takes a build a window")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readOrders returns the orders of the newest cut that have an item, the oldest first.
func readOrders(ctx context.Context, pipe *command.Pipeline) (all []rows.Order, err error) {
	cut, err := commitlog.CurrentCut(ctx, pipe.Store, pipe.Identity.Shards)
	if err != nil {
		return nil, err
	}
	horizon, err := cut.OrderHorizon(ctx, pipe.Store)
	if err != nil {
		return nil, err
	}
	for shard := range pipe.Identity.Shards {
		for o, err := range cut.Orders(ctx, pipe.Store, shard, horizon) {
			if err != nil {
				return nil, err
			}
			if o.Deleted || len(o.Items) == 0 {
				continue
			}
			kept := rows.Order{OrderID: strings.Clone(o.OrderID), Time: o.Time, Customer: strings.Clone(o.Customer)}
			for _, item := range o.Items {
				kept.Items = append(kept.Items, strings.Clone(item))
			}
			all = append(all, kept)
		}
	}
	slices.SortFunc(all, func(a, b rows.Order) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.OrderID, b.OrderID))
	})
	return all, nil
}

// complete asks about the newest orders, by the counts of the others.
func complete(orders []rows.Order, newest float64, seed uint64, workers int) (*completed, error) {
	n := len(orders) - int(math.Ceil(newest*float64(len(orders))))
	if n < 1 {
		return nil, errors.New("there are too few orders to count some and ask about others")
	}
	numbered, ids := numberItems(orders, n)
	items := len(ids)
	x := pairs.New(items, 0)
	for _, items := range numbered[:n] {
		if _, err := x.Add(items, len(items)); err != nil {
			return nil, err
		}
	}
	questions := completion.Questions(numbered[n:], seed)
	out := &completed{Orders: n, Items: items, Asked: len(questions)}
	for _, q := range questions {
		if q.Hidden < 0 {
			out.Unknown++
		}
	}
	methods := []completion.Method{completion.Popularity(x), completion.Cosine(x, questions)}
	if items <= completion.MaxDense {
		dense, err := completion.Dense(numbered[:n], items, pairs.DefaultMaxItems, pairs.DefaultRidge.Penalty)
		if err != nil {
			return nil, err
		}
		methods = append(methods, dense)
	}
	methods = append(methods, completion.Ridge(x, questions, pairs.DefaultRidge, workers))
	out.Figures = completion.Recall(questions, items, methods, workers)
	return out, nil
}

// numberItems numbers the items of the first n orders, by name. Others are -1.
func numberItems(orders []rows.Order, n int) (numbered [][]int32, ids []string) {
	numbers := map[string]int32{}
	for _, o := range orders[:n] {
		for _, item := range o.Items {
			numbers[item] = 0
		}
	}
	ids = slices.Sorted(maps.Keys(numbers))
	for i, item := range ids {
		numbers[item] = int32(i)
	}
	numbered = make([][]int32, len(orders))
	for k, o := range orders {
		for _, item := range o.Items {
			i, known := numbers[item]
			if !known {
				i = -1
			}
			numbered[k] = append(numbered[k], i)
		}
		slices.Sort(numbered[k])
	}
	return numbered, ids
}

func printCompleted(a *command.App, c *completed) error {
	fmt.Fprintf(a.Out, "%s of %s count; %s are asked about, each with an item hidden, which is new in %s\n\n",
		command.Plural(c.Orders, "order"), command.Plural(c.Items, "item"), command.Plural(c.Asked, "newer one",
			"newer ones"), console.Count(c.Unknown))
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "recall@%d\tby all others\tby one\n", completion.At)
	for _, f := range c.Figures {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Method, recall(c.Asked, f.All), recall(c.Asked, f.One))
	}
	return w.Flush()
}

// recall formats a figure. Without a question there is none.
func recall(asked int, share float64) string {
	if asked == 0 {
		return command.TooFew
	}
	return fmt.Sprintf("%.3f", share)
}
