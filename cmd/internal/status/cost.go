package status

import (
	"context"
	"time"

	"giantstream/cmd/internal/service/publishing"
	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
)

// Requests are calls of an object store, by how stores charge for them.
type Requests struct {
	Puts  float64 `json:"puts"`  // PUT
	Gets  float64 `json:"gets"`  // GET and HEAD
	Lists float64 `json:"lists"` // LIST, of up to 1,000 objects
}

func (r Requests) plus(o Requests) Requests {
	return Requests{r.Puts + o.Puts, r.Gets + o.Gets, r.Lists + o.Lists}
}

func (r Requests) times(n float64) Requests { return Requests{r.Puts * n, r.Gets * n, r.Lists * n} }

// What a window of one row object costs, counted by TestRequestsOfAWindow on the program's own shard, follower and
// compactor. An object that is read whole is a GET.
var (
	// requestsOfCommit: the row object, the manifest and a look at the boundary.
	requestsOfCommit = Requests{Puts: 2, Gets: 1}
	// requestsOfFollow: a look at the cursor. Manifest and rows are still in the memory of the process that has written
	// them.
	requestsOfFollow = Requests{Gets: 1}
	// requestsOfMove, every publishing.CursorEvery: a look at the cursor, and its move.
	requestsOfMove = Requests{Puts: 1, Gets: 1}
	// requestsOfMerge: the row object, unless it is still in memory, and 1/64 of a search for the head and of the
	// merged object and its document.
	requestsOfMerge = Requests{Puts: 2. / 64, Gets: 1 + 12./64}
	// requestsOfLook, every refreshing.DriftPoll: for a manifest after the last one. Manifests and rows of windows in
	// between are still in memory; a look that finds some asks for nothing.
	requestsOfLook = Requests{Gets: 1 + 1./16}
	// requestsOfCheckpoint: its document and about four files that the checkpoints before it do not have.
	requestsOfCheckpoint = Requests{Puts: 5, Gets: 6, Lists: 1}
)

// Prices are those of a store, in dollars.
type Prices struct {
	Put  float64 `json:"put_per_1000"` // PUT and LIST
	Get  float64 `json:"get_per_1000"`
	Byte float64 `json:"gb_month"`
}

// ListPrices are Amazon's for S3 Standard in us-east-1 as published in January 2025, without transfer.
var ListPrices = Prices{Put: 0.005, Get: 0.0004, Byte: 0.023}

// Cost is what a shard's objects cost in a month in which it commits at the end of each window.
type Cost struct {
	Windows  float64  `json:"windows"` // in a month
	Requests Requests `json:"requests"`
	// Objects and Bytes are what the store holds now of all shards.
	Objects int64   `json:"objects"`
	Bytes   int64   `json:"bytes"`
	Prices  Prices  `json:"Prices"`
	Dollars float64 `json:"dollars"` // of one shard
	// Parts add up to Requests.
	Parts  []CostPart `json:"-"`
	shards int
}

// CostPart is what one kind of work takes.
type CostPart struct {
	Name string
	Requests
}

// month is the twelfth of a year.
const month = 365 * 24 * time.Hour / 12

// CostOf computes the requests from the windows and the retention that the configuration has.
func CostOf(cfg *config.Config, p Prices) Cost {
	c := Cost{Prices: p, Windows: month.Seconds() / cfg.Window.Time.Seconds(), shards: cfg.Shards}
	add := func(name string, r Requests) {
		c.Parts = append(c.Parts, CostPart{name, r})
		c.Requests = c.Requests.plus(r)
	}
	add("commits", requestsOfCommit.times(c.Windows))
	add("embeddings", requestsOfFollow.times(c.Windows).plus(
		requestsOfMove.times(min(c.Windows, month.Seconds()/publishing.CursorEvery.Seconds()))))
	// The collector of orphans lists all rows every hour.
	kept := c.Windows
	if cfg.Compaction.Enabled {
		add("merging", requestsOfMerge.times(c.Windows))
		kept = min(kept, cfg.Compaction.Grace.Seconds()/cfg.Window.Time.Seconds())
		// Per block of 64: two manifests and a document; one listing per 1,000 manifests.
		if cfg.Compaction.History > 0 {
			add("folding", Requests{Gets: 6 * c.Windows / 64, Lists: c.Windows / 1000})
		}
	}
	if !wiring.DriftThresholds(cfg).AreOff() {
		looks := month.Seconds() / refreshing.DriftPoll.Seconds()
		add("drift", requestsOfLook.times(max(0, looks-c.Windows)).plus(
			Requests{Puts: month.Seconds() / refreshing.DriftSave.Seconds() / float64(max(1, cfg.Shards))}))
	}
	hours := month.Hours()
	add("removal", Requests{Lists: 2 * hours * (1 + kept/1000)})
	if every := cfg.State.CheckpointEvery; every > 0 {
		add("checkpoints", requestsOfCheckpoint.times(month.Seconds()/every.Seconds()))
	}
	c.Dollars = c.DollarsOf(c.Requests)
	return c
}

// DollarsOf returns the cost of requests in dollars.
func (c *Cost) DollarsOf(r Requests) float64 {
	return ((r.Puts+r.Lists)*c.Prices.Put + r.Gets*c.Prices.Get) / 1000
}

// AddStored adds what the store of a pipeline with the given number of shards holds.
func (c *Cost) AddStored(ctx context.Context, store sink.Store, shards int) error {
	c.shards = shards
	for info, err := range store.List(ctx, "shards/", "") {
		if err != nil {
			return err
		}
		c.Objects++
		c.Bytes += info.Size
	}
	c.Dollars += c.OfBytes()
	return nil
}

// OfBytes is what one shard's objects cost a month.
func (c *Cost) OfBytes() float64 {
	return float64(c.Bytes) / 1e9 * c.Prices.Byte / float64(max(1, c.shards))
}
