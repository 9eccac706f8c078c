package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/config"
)

// requests are calls of an object store, by how stores charge for them.
type requests struct {
	Puts  float64 `json:"puts"`  // PUT
	Gets  float64 `json:"gets"`  // GET and HEAD
	Lists float64 `json:"lists"` // LIST, of up to 1,000 objects
}

func (r requests) plus(o requests) requests {
	return requests{r.Puts + o.Puts, r.Gets + o.Gets, r.Lists + o.Lists}
}

func (r requests) times(n float64) requests { return requests{r.Puts * n, r.Gets * n, r.Lists * n} }

// What a window of one row object costs, counted by TestRequestsOfAWindow on the program's own shard, follower and
// compactor. An object that is read whole is a GET.
var (
	// requestsOfCommit: the row object, the manifest and a look at the boundary.
	requestsOfCommit = requests{Puts: 2, Gets: 1}
	// requestsOfFollow: a look at the cursor. Manifest and rows are still in the memory of the process that has written
	// them.
	requestsOfFollow = requests{Gets: 1}
	// requestsOfMove, every service.CursorEvery: a look at the cursor, and its move.
	requestsOfMove = requests{Puts: 1, Gets: 1}
	// requestsOfMerge: the row object, unless it is still in memory, and 1/64 of a search for the head and of the
	// merged object and its document.
	requestsOfMerge = requests{Puts: 2. / 64, Gets: 1 + 12./64}
	// requestsOfCheckpoint: its document and about four files that the checkpoints before it do not have.
	requestsOfCheckpoint = requests{Puts: 5, Gets: 6, Lists: 1}
)

// prices are those of a store, in dollars.
type prices struct {
	Put  float64 `json:"put_per_1000"` // PUT and LIST
	Get  float64 `json:"get_per_1000"`
	Byte float64 `json:"gb_month"`
}

// listPrices are Amazon's for S3 Standard in us-east-1 as published in January 2025, without transfer.
var listPrices = prices{Put: 0.005, Get: 0.0004, Byte: 0.023}

func (p *prices) register(c *cobra.Command) {
	*p = listPrices
	c.Flags().Float64Var(&p.Put, "price-put", p.Put, "with --cost: dollars for 1,000 PUT or LIST requests")
	c.Flags().Float64Var(&p.Get, "price-get", p.Get, "with --cost: dollars for 1,000 GET requests")
	c.Flags().Float64Var(&p.Byte, "price-gb", p.Byte, "with --cost: dollars for 1 GB (10^9 bytes) and month")
}

// cost is what a shard's objects cost in a month in which it commits at the end of each window.
type cost struct {
	Windows  float64  `json:"windows"` // in a month
	Requests requests `json:"requests"`
	// Objects and Bytes are what the store holds now of all shards.
	Objects int64   `json:"objects"`
	Bytes   int64   `json:"bytes"`
	Prices  prices  `json:"prices"`
	Dollars float64 `json:"dollars"` // of one shard
	shards  int
	parts   []costPart
}

type costPart struct {
	name string
	requests
}

// month is the twelfth of a year.
const month = 365 * 24 * time.Hour / 12

// costOf computes the requests from the windows and the retention that the configuration has.
func costOf(cfg *config.Config, p prices) cost {
	c := cost{Prices: p, Windows: month.Seconds() / cfg.Window.Time.Seconds(), shards: cfg.Shards}
	add := func(name string, r requests) {
		c.parts = append(c.parts, costPart{name, r})
		c.Requests = c.Requests.plus(r)
	}
	add("commits", requestsOfCommit.times(c.Windows))
	add("embeddings", requestsOfFollow.times(c.Windows).plus(
		requestsOfMove.times(min(c.Windows, month.Seconds()/service.CursorEvery.Seconds()))))
	// The collector of orphans lists all rows every hour.
	kept := c.Windows
	if cfg.Compaction.Enabled {
		add("merging", requestsOfMerge.times(c.Windows))
		kept = min(kept, cfg.Compaction.Grace.Seconds()/cfg.Window.Time.Seconds())
		// Per block of 64: two manifests and a document; one listing per 1,000 manifests.
		if cfg.Compaction.History > 0 {
			add("folding", requests{Gets: 6 * c.Windows / 64, Lists: c.Windows / 1000})
		}
	}
	hours := month.Hours()
	add("removal", requests{Lists: 2 * hours * (1 + kept/1000)})
	if every := cfg.State.CheckpointEvery; every > 0 {
		add("checkpoints", requestsOfCheckpoint.times(month.Seconds()/every.Seconds()))
	}
	c.Dollars = c.dollars(c.Requests)
	return c
}

func (c *cost) dollars(r requests) float64 {
	return ((r.Puts+r.Lists)*c.Prices.Put + r.Gets*c.Prices.Get) / 1000
}

// readCost adds what the store holds.
func readCost(ctx context.Context, in *pipeline, p prices) (cost, error) {
	c := costOf(in.cfg, p)
	c.shards = in.id.Shards
	for info, err := range in.store.List(ctx, "shards/", "") {
		if err != nil {
			return c, err
		}
		c.Objects++
		c.Bytes += info.Size
	}
	c.Dollars += c.bytes()
	return c, nil
}

// bytes is what one shard's objects cost a month.
func (c *cost) bytes() float64 {
	return float64(c.Bytes) / 1e9 * c.Prices.Byte / float64(max(1, c.shards))
}

func (c *cost) print(out io.Writer) error {
	fmt.Fprintf(out, "\nper shard and month, if every window has changes (%s windows):\n\n",
		console.Count(int64(c.Windows)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tPUT\tGET\tLIST\tDOLLARS\t")
	for _, p := range append(c.parts, costPart{"requests", c.Requests}) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t\n", p.name, console.Count(int64(p.Puts)), console.Count(int64(p.Gets)),
			console.Count(int64(p.Lists)), c.dollars(p.requests))
	}
	fmt.Fprintf(w, "bytes\t\t\t\t%.2f\t\n", c.bytes())
	fmt.Fprintf(w, "sum\t\t\t\t%.2f\t\n", c.Dollars)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s objects of %s in all shards now; generations and transfer out of the store's region are "+
		"not counted\nprices: %g dollars for 1,000 PUT or LIST, %g for 1,000 GET, %g for a GB and month\n"+
		"(defaults: S3 Standard, us-east-1, January 2025)\n", console.Count(c.Objects), console.Bytes(c.Bytes),
		c.Prices.Put, c.Prices.Get, c.Prices.Byte)
	return nil
}
