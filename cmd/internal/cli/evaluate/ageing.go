package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"text/tabwriter"
	"time"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/featurize/pairs"
	"giantstream/sink/rows"
	"giantstream/train/generation/eval/completion"
)

// aged is what 'giantstream evaluate orders --windows' prints: the newest orders by windows of their time, each asked
// about before it counts.
type aged struct {
	Orders  int          `json:"orders"`
	Windows []agedWindow `json:"windows"`
}

type agedWindow struct {
	// Until is when the window ends, Days how old the counts that stand still are at its middle.
	Until time.Time `json:"until"`
	Days  float64   `json:"days"`
	Asked int       `json:"asked"`
	// Current counts all orders before the window, Frozen those before the first one.
	Current completion.Figures `json:"current"`
	Frozen  completion.Figures `json:"frozen"`
	// Popularity is that of the current counts.
	Popularity completion.Figures `json:"popularity"`
	Embeddings *agedEmbeddings    `json:"embeddings,omitempty"`
}

// age asks about the newest orders, ascending by time, window by window, and those of e, too, if it is not nil.
func age(ctx context.Context, orders []rows.Order, newest float64, windows int, seed uint64, workers int, e *ager) (
	*aged, error) {
	n := len(orders) - int(math.Ceil(newest*float64(len(orders))))
	if n < 1 || len(orders)-n < windows {
		return nil, errors.New("there are too few orders to count some and ask about others in each window")
	}
	numbered, ids := numberItems(orders, len(orders))
	items := len(ids)
	frozen, current := pairs.New(items, 0), pairs.New(items, 0)
	for _, o := range numbered[:n] {
		if err := addTo(o, frozen, current); err != nil {
			return nil, err
		}
	}
	if err := e.begin(ctx, ids, orders, numbered, n); err != nil {
		return nil, err
	}
	out := &aged{Orders: n}
	begin, span := orders[n].Time, orders[len(orders)-1].Time-orders[n].Time
	at := n
	for w := range windows {
		// In microseconds; a year times as many windows as anybody asks for fits.
		until, from := begin+span*int64(w+1)/int64(windows), at
		for at < len(orders) && (orders[at].Time <= until || w == windows-1) {
			at++
		}
		asked := completion.Questions(numbered[from:at], seed)
		one := agedWindow{Until: time.UnixMicro(until).UTC(), Asked: len(asked),
			Days: float64(span) * (float64(w) + 0.5) / float64(windows) / float64(24*time.Hour.Microseconds())}
		methods := []completion.Method{completion.Ridge(current, asked, pairs.DefaultRidge, workers),
			completion.Ridge(frozen, asked, pairs.DefaultRidge, workers), completion.Popularity(current)}
		figures := completion.Recall(asked, items, methods, workers)
		one.Current, one.Frozen, one.Popularity = figures[0], figures[1], figures[2]
		if from < at {
			var err error
			if one.Embeddings, err = e.ask(ctx, orders[from:at], current, numbered[from:at]); err != nil {
				return nil, fmt.Errorf("window until %s: %w", one.Until.Format(time.DateOnly), err)
			}
		}
		out.Windows = append(out.Windows, one)
		for _, o := range numbered[from:at] {
			if err := addTo(o, current); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func addTo(items []int32, counts ...*pairs.Incidence) error {
	for _, x := range counts {
		if _, err := x.Add(items, len(items)); err != nil {
			return err
		}
	}
	return nil
}

func printAged(a *command.App, c *aged) error {
	asked := 0
	for _, w := range c.Windows {
		asked += w.Asked
	}
	fmt.Fprintf(a.Out, "%s count at first; %s are asked about, each before it counts: with all orders before its "+
		"window, and with the first ones alone\n\n", command.Plural(c.Orders, "order"),
		command.Plural(asked, "newer one", "newer ones"))
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "until\tdays\tasked\trecall@%d: current\tfrozen\tpopularity\tby one: current\tfrozen\n",
		completion.At)
	for _, one := range c.Windows {
		fmt.Fprintf(w, "%s\t%.0f\t%s", one.Until.Format(time.DateOnly), one.Days, console.Count(one.Asked))
		for _, share := range []float64{one.Current.All, one.Frozen.All, one.Popularity.All, one.Current.One,
			one.Frozen.One} {
			fmt.Fprintf(w, "\t%s", recall(one.Asked, share))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, one := range c.Windows {
		if one.Embeddings != nil {
			return printAgedEmbeddings(a, c)
		}
	}
	return nil
}
