package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/featurize/pairs"
	"giantstream/internal/graphdir"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

// agedEmbeddings are how embeddings predict the links that the orders of a window make and earlier ones do not: those
// of a generation of all orders before the window, of one of the orders before the first window whose rows of orders
// follow, and of that one as it was.
type agedEmbeddings struct {
	// Known are between items that were ordered before the window, Added with one that was not.
	Known agedLinks `json:"known"`
	Added agedLinks `json:"added"`
}

// agedLinks is how well the embeddings rank links. What has no figures was asked about too few of them.
type agedLinks struct {
	Links     int                  `json:"links"`
	Current   *eval.LinkMetrics    `json:"current,omitempty"`
	Following *eval.LinkDifference `json:"following_less_current,omitempty"`
	Frozen    *eval.LinkDifference `json:"frozen_less_current,omitempty"`
}

// leastLinks have figures.
const leastLinks = 30

// asked are the links that are asked about: of pairs that are more than chance in a single window, and few an item, so
// that those of the most orders do not decide.
var asked = pairs.Rule{Measure: pairs.NPMI, MinSupport: 5, MinAssociation: 0.3, MaxPartners: 10}

// askedItems is how many items an order has at most whose pairs are asked about: larger ones are of wholesalers.
const askedItems = 60

// ager builds generations as of the beginnings of windows, in a store of its own.
type ager struct {
	pipe        *command.Pipeline
	closeDevice func()
	dir         string
	store       sink.Store
	log         work.Log

	ids   []string // by number
	texts []string // "" for what is no node

	earlier   *pairs.Incidence // what makes the links that are known
	first     *generation.Generation
	following *generation.Following
	live      *pairs.Live
}

// newAger opens the store. Close the ager after use.
func newAger(app *command.App, pipe *command.Pipeline) (a *ager, err error) {
	a = &ager{pipe: pipe}
	if a.dir, err = os.MkdirTemp("", "giantstream-evaluate-*"); err != nil {
		return nil, err
	}
	if a.store, err = dirstore.Open(a.dir); err == nil {
		a.closeDevice, err = app.OpenDevice(pipe.Workplace)
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// begin takes all items and orders, of which the first n come before the first window. With a nil ager it does nothing.
func (a *ager) begin(ctx context.Context, ids []string, orders []rows.Order, numbered [][]int32, n int) error {
	if a == nil {
		return nil
	}
	if err := a.readTexts(ctx, ids); err != nil {
		return err
	}
	hashes := make([]uint64, len(ids))
	for k, id := range ids {
		hashes[k] = numeric.HashString(id)
	}
	a.live = pairs.NewLive(pairs.DefaultRidge, 0, func(i, j int32) int {
		return cmp.Or(cmp.Compare(hashes[i], hashes[j]), strings.Compare(ids[i], ids[j]))
	}, func(i int32) bool { return a.texts[i] != "" })
	a.live.Grow(len(ids))
	a.earlier = pairs.New(len(ids), askedItems)
	return a.add(orders[:n], numbered[:n])
}

// readTexts reads the texts of items as they are now.
func (a *ager) readTexts(ctx context.Context, ids []string) error {
	cut, err := logview.OpenCut(ctx, a.pipe.Store, a.pipe.Identity.Shards, nil)
	if err != nil {
		return err
	}
	a.log, a.ids, a.texts = cut.Log(), ids, make([]string, len(ids))
	number := make(map[string]int32, len(ids))
	for k, id := range ids {
		number[id] = int32(k)
	}
	for r, err := range cut.Rows(ctx) {
		if err != nil {
			return err
		}
		if k, ordered := number[r.NodeID]; ordered && !r.Deleted {
			a.texts[k] = strings.Clone(r.Text)
		}
	}
	return nil
}

func (a *ager) close() {
	if a.closeDevice != nil {
		a.closeDevice()
	}
	_ = os.RemoveAll(a.dir) // a temporary directory
}

// add adds orders to the earlier ones, and has the first generation follow them.
func (a *ager) add(orders []rows.Order, numbered [][]int32) error {
	for k, o := range orders {
		lines := make([]pairs.Line, len(numbered[k]))
		for n, i := range numbered[k] {
			lines[n].Item = i
		}
		err := errors.Join(a.live.Set(o.OrderID, generation.CustomerOf(&o), lines), addTo(numbered[k], a.earlier))
		if err != nil {
			return err
		}
	}
	return nil
}

// ask builds the generation of the orders before a window, which x counts, and asks about those of the window, which
// the first generation follows then. With a nil ager it does nothing.
func (a *ager) ask(ctx context.Context, orders []rows.Order, x *pairs.Incidence, window [][]int32) (*agedEmbeddings,
	error) {
	if a == nil {
		return nil, nil
	}
	current, err := a.build(ctx, orders[0].Time, x)
	if err != nil {
		return nil, err
	}
	if a.first == nil {
		a.first, a.following = current, current.Following()
	}
	a.follow()
	dim := current.Encoder.Dim()
	var vectors [3][]float32
	for k, encode := range []func(ids, texts []string, out []float32) error{current.Encode, a.following.Encode,
		a.first.Encode} {
		vectors[k] = make([]float32, len(a.ids)*dim)
		if err := encode(a.ids, a.texts, vectors[k]); err != nil {
			return nil, err
		}
	}
	of := pairs.New(len(a.ids), askedItems)
	for _, items := range window {
		if err := addTo(items, of); err != nil {
			return nil, err
		}
	}
	links := a.links(a.earlier)
	known, added := a.newLinks(x, links, a.links(of))
	g := &train.Graph{IDs: a.ids, Neighbours: graphdir.Undirected(len(a.ids), links)}
	out := &agedEmbeddings{}
	for _, group := range []struct {
		to    *agedLinks
		edges []eval.Edge
	}{{&out.Known, known}, {&out.Added, added}} {
		if group.to.Links = len(group.edges); group.to.Links < leastLinks {
			continue
		}
		var scores [3]eval.LinkScores
		for k := range scores {
			if scores[k], err = eval.ScoreLinks(vectors[k], dim, g, group.edges, eval.LinkOptions{
				Seed: a.pipe.Config.Train.Seed, Workers: a.pipe.Config.Train.Threads}); err != nil {
				return nil, err
			}
		}
		metrics := scores[0].Metrics()
		following, err := eval.Difference(scores[1], scores[0])
		frozen, err2 := eval.Difference(scores[2], scores[0])
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		group.to.Current, group.to.Following, group.to.Frozen = &metrics, &following, &frozen
	}
	return out, a.add(orders, window)
}

// build builds the generation after the one of the window before.
func (a *ager) build(ctx context.Context, begin int64, x *pairs.Incidence) (*generation.Generation, error) {
	later := map[string]bool{}
	for k, id := range a.ids {
		if x.Support(int32(k)) == 0 {
			later[id] = true
		}
	}
	w := &build.Worker{Means: work.Means{Store: a.store,
		Resources: wiring.ResourcesOf(a.pipe.Config, a.pipe.Device, a.pipe.Progress, a.pipe.Log),
		Log: func(context.Context, map[int]int64) (work.Log, error) {
			return before{a.log, begin, later}, nil
		}}}
	request := wiring.RequestOf(a.pipe.Config)
	request.Shards = a.pipe.Identity.Shards
	doc, err := w.Build(ctx, request, stages.Finish)
	if err != nil {
		return nil, err
	}
	return generation.Open(ctx, a.store, doc, a.pipe.Device)
}

// follow brings the rows of the first generation up to the orders that were added.
func (a *ager) follow() {
	d := a.following.Directions()
	if d == nil {
		return
	}
	items, numbers := make([]int32, len(a.ids)), make([]int32, len(a.ids))
	for k, id := range a.ids {
		items[k], numbers[k] = int32(k), d.Find(numeric.HashString(id))
	}
	a.following.OrderedRows(a.live, items, numbers, func(item int32, row []uint16) {
		a.following.FollowOrders(a.ids[item], row)
	})
}

// links are those of orders between nodes, ascending.
func (a *ager) links(x *pairs.Incidence) (all [][2]int32) {
	for i, partners := range x.NewCounters(a.pipe.Config.Train.Threads).Partners(0, len(a.ids), asked) {
		for _, p := range partners {
			if a.texts[i] != "" && a.texts[p.Item] != "" {
				all = append(all, [2]int32{min(int32(i), p.Item), max(int32(i), p.Item)})
			}
		}
	}
	slices.SortFunc(all, compareLinks)
	return slices.Compact(all)
}

func compareLinks(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }

// newLinks divides the links of a window that there were not before it: between items that were ordered before, and
// with one that was not, which is Src.
func (a *ager) newLinks(x *pairs.Incidence, links, window [][2]int32) (known, added []eval.Edge) {
	for _, l := range window {
		if _, is := slices.BinarySearchFunc(links, l, compareLinks); is {
			continue
		}
		e := eval.Edge{Src: l[0], Dst: l[1]}
		switch left, right := x.Support(l[0]) > 0, x.Support(l[1]) > 0; {
		case left && right:
			known = append(known, e)
		case left:
			added = append(added, eval.Edge{Src: e.Dst, Dst: e.Src})
		case right:
			added = append(added, e)
		}
	}
	return known, added
}

// before is a commit log without the orders from a time on, and without the nodes that these order first.
type before struct {
	work.Log
	time  int64
	later map[string]bool
}

// Orders implements work.Log.
func (b before) Orders(ctx context.Context, shard int) iter.Seq2[rows.Order, error] {
	return func(yield func(rows.Order, error) bool) {
		for o, err := range b.Log.Orders(ctx, shard) {
			if (err != nil || o.Time < b.time) && !yield(o, err) {
				return
			}
		}
	}
}

// Rows implements work.Log.
func (b before) Rows(ctx context.Context, s stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for r, err := range b.Log.Rows(ctx, s) {
			if (err != nil || !b.later[r.NodeID]) && !yield(r, err) {
				return
			}
		}
	}
}

func printAgedEmbeddings(a *command.App, c *aged) error {
	for _, group := range []struct {
		what string
		of   func(*agedEmbeddings) *agedLinks
	}{
		{"embeddings, links between items that were ordered before", func(e *agedEmbeddings) *agedLinks {
			return &e.Known
		}},
		{"embeddings, links with items that were not, by their texts", func(e *agedEmbeddings) *agedLinks {
			return &e.Added
		}},
	} {
		fmt.Fprintf(a.Out, "\n%s\n", group.what)
		w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "until\tdays\tlinks\tcurrent: AUC\tMRR\tfollowing less current: AUC\tMRR"+
			"\tfrozen less current: AUC\tMRR")
		for _, one := range c.Windows {
			if one.Embeddings == nil {
				continue // nothing was ordered
			}
			l := group.of(one.Embeddings)
			fmt.Fprintf(w, "%s\t%.0f\t%s", one.Until.Format(time.DateOnly), one.Days, console.Count(l.Links))
			if l.Current == nil {
				fmt.Fprintf(w, "\t%s\n", command.TooFew)
				continue
			}
			fmt.Fprintf(w, "\t%.3f\t%.3f", l.Current.AUC, l.Current.MRR)
			for _, d := range []*eval.LinkDifference{l.Following, l.Frozen} {
				fmt.Fprintf(w, "\t%+.4f ± %.4f\t%+.4f ± %.4f", d.AUC, d.AUCStdErr, d.MRR, d.MRRStdErr)
			}
			fmt.Fprintln(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
