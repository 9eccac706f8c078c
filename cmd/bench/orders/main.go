// Command orders measures what orders say of items, as links that a generation is built of, on a shop's invoices:
//
//	go run ./cmd/bench/orders -data ../shared/data/online-retail
//
// Invoices before -until train. To be predicted is what the invoices from then on, before -to, link by a rule and the
// training ones do not: between known items, and with an item that no training invoice has, by its text alone. The
// rule takes a pair of at least 5 invoices of 2 to 60 items with a normalised PMI of at least 0.3, and of these the 10
// best of an item. Each link is ranked among 100 items drawn by degree. One generation is built of the training links
// by the same rule, as a shop would send them ("rule"), and others of the training invoices ("orders").
//
// With -trained, the invoices from that day on are kept from the generations: what they are asked stays the same, and
// they are older. With -most and -share, fewer items of each, and fewer of them, are trained: the orders of other shops
// have few items, and most pairs come once.
//
// With -complete, what is to be predicted is instead an item that is hidden of each later invoice of 2 to 60 items,
// from its other items, and from one of them. The texts are those of a generation of the training invoices.
//
// With -follow, the later invoices come one by one, and tables of what goes with what follow them in several ways. Each
// is asked about the invoices of a day as it is before that day.
//
// With -lived, the later invoices come in windows of -days days, whatever -to says, and each window is predicted before
// it is learned: by a generation a window that is averaged with the one before, and by one from scratch.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/generate"
	"giantstream/cmd/bench/internal/stage"
	"giantstream/config"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric/blas"
)

func main() {
	blas32.Use(blas.New())
	b := bench{config: config.Default(), log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
		Level: slog.LevelWarn}))}
	data := flag.String("data", "../shared/data/online-retail", "folder of invoices.csv.gz")
	until := flag.String("until", "2011-06-01", "the first day that is to be predicted")
	to := flag.String("to", "2011-09-01", "the day after the last that is to be predicted")
	trained := flag.String("trained", "", "the day from which invoices are kept from the generations (default: -until)")
	seeds := flag.Uint64("seeds", 3, "how many generations are averaged")
	rules := flag.String("rules", "", "measure:min_support:min_association:max_partners, several by commas")
	most := flag.Int("most", math.MaxInt, "how many items of each training invoice are kept, drawn")
	share := flag.Float64("share", 1, "which share of the training invoices is kept, drawn")
	complete := flag.Bool("complete", false, "hide an item of each later invoice, and ask what goes with the others")
	support := flag.Bool("support", false, "tell items apart by their orders, beside text and behaviour alone")
	l := life{}
	flag.IntVar(&l.windows, "lived", 0, "how many windows a shop lives through, a generation each")
	flag.IntVar(&l.days, "days", 18, "of a window")
	flag.Uint64Var(&l.seed, "seed", 1, "of the generations of -lived")
	followed := flag.Bool("follow", false, "have tables of what goes with what follow the later invoices")
	flag.Parse()
	path := filepath.Join(*data, "invoices.csv.gz")
	if *followed {
		stage.Exit("orders", follow(path, *until, *to))
		return
	}
	if l.windows > 0 {
		stage.Exit("orders", b.live(context.Background(), path, *until, l))
		return
	}
	if *complete {
		stage.Exit("orders", b.complete(context.Background(), path, *until, *to, *seeds))
		return
	}
	if *support {
		stage.Exit("orders", b.support(context.Background(), path, *until, *to, *seeds))
		return
	}
	keep := thinned{cmp.Or(*trained, *until), *most, *share}
	stage.Exit("orders", b.run(context.Background(), path, *until, *to, keep, *rules, *seeds))
}

// thinned says what is kept of the training invoices.
type thinned struct {
	until string
	most  int
	share float64
}

type bench struct {
	config config.Config
	log    *slog.Logger
}

func (b *bench) run(ctx context.Context, path, until, to string, keep thinned, rules string, seeds uint64) error {
	s, err := readSplit(path, until, to)
	if err != nil {
		return err
	}
	from, err := time.Parse(time.DateOnly, keep.until)
	if err != nil {
		return err
	}
	s.age(from)
	s.thin(keep.most, keep.share)
	fmt.Printf("%d items, %d new; %d invoices; %d links; asked: %d between known items, %d with a new one\n",
		s.known, len(s.items)-s.known, len(s.training), len(s.links), len(s.later), len(s.cold))
	fmt.Println("| built of | links | known items AUC / MRR | new items AUC / MRR |\n|---|---|---|---|")
	if err := b.measure(ctx, s, "rule", source{s.rows(true), nil}, seeds); err != nil {
		return err
	}
	given := source{s.rows(false), s.orders()}
	o := &b.config.Links.FromOrders
	all := []string{fmt.Sprintf("%s:%d:%g:%d", o.Measure, o.MinSupport, o.MinAssociation, o.MaxPartners)}
	if rules != "" {
		all = strings.Split(rules, ",")
	}
	for _, r := range all {
		if _, err := fmt.Sscanf(strings.ReplaceAll(r, ":", " "), "%s %d %f %d", &o.Measure, &o.MinSupport,
			&o.MinAssociation, &o.MaxPartners); err != nil {
			return fmt.Errorf("rule %q: %w", r, err)
		}
		if err := b.measure(ctx, s, "orders, "+r, given, seeds); err != nil {
			return err
		}
	}
	return nil
}

func readSplit(path, until, to string) (*split, error) {
	invoices, err := readInvoices(path)
	if err != nil {
		return nil, err
	}
	first, last, err := parseDays(until, to)
	if err != nil {
		return nil, err
	}
	return divide(invoices, first, last), nil
}

// parseDays parses two days.
func parseDays(until, to string) (first, last time.Time, err error) {
	first, err = time.Parse(time.DateOnly, until)
	last, err2 := time.Parse(time.DateOnly, to)
	return first, last, errors.Join(err, err2)
}

// source is a graph as a build reads it. It implements generation.Source.
type source struct {
	generationtest.Source
	orders []rows.Order
}

// Orders are what generationtest.LogOf looks for.
func (s source) Orders() []rows.Order { return s.orders }

// measure builds generations, and prints what they predict on average.
func (b *bench) measure(ctx context.Context, s *split, name string, src source, seeds uint64) error {
	var links int
	var weights []string // of the orders as a view, by seed
	var sums [2]struct{ auc, mrr float64 }
	for seed := range seeds {
		g, vectors, err := b.build(ctx, s, src, seed+1)
		if err != nil {
			return err
		}
		links = g.Doc.Graph.Links / 2
		if o := g.Doc.Graph.Orders; o != nil && o.Behaviour != nil {
			weights = append(weights, fmt.Sprintf("%.2g", o.Behaviour.Weight))
		}
		for k, edges := range [][]eval.Edge{s.later, s.cold} {
			scores, err := eval.ScoreLinks(vectors, len(vectors)/len(s.items), s.graph(), edges,
				eval.LinkOptions{Seed: 1})
			if err != nil {
				return err
			}
			m := scores.Metrics()
			sums[k].auc += m.AUC / float64(seeds)
			sums[k].mrr += m.MRR / float64(seeds)
		}
	}
	if len(weights) > 0 {
		name += ", view " + strings.Join(weights, " ")
	}
	known, cold := sums[0], sums[1]
	fmt.Printf("| %s | %d | %.3f / %.3f | %.3f / %.3f |\n", name, links, known.auc, known.mrr, cold.auc, cold.mrr)
	return nil
}

// build builds a generation, and returns the vectors of all items.
func (b *bench) build(ctx context.Context, s *split, src source, seed uint64) (*generation.Generation, []float32,
	error) {
	b.config.Train.Seed = seed
	return generate.Build(ctx, &b.config, b.log, src, nil, s.items, s.texts)
}
