// Package verify checks a whole store: Store compares every object with the checksums stored with it, and
// repairs what is derived; Against compares the committed rows with the input topics.
package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"giantstream/internal/ambient"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/lease"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/sources"
)

// Options of Store.
type Options struct {
	Store sink.Store
	// Generations are those of the store.
	Generations Generations
	Progress    ambient.Progress
	Log         *slog.Logger // nil logs nothing
	// Deep computes the graphs again from the rows.
	Deep bool
	// Repair repairs what can be made again.
	Repair bool
}

// Generations are what of the store is training's.
type Generations interface {
	// Audit checks it, as commitlog.AuditShards does the shards.
	Audit(ctx context.Context, a *audit.Audit) error
	// Complete returns the generations that were built to the end, by number. Those that cannot be read are left out.
	Complete(ctx context.Context) ([]Built, error)
}

// Built says what a generation was built from.
type Built struct {
	Generation int64
	Cut        commitlog.Cut
	// Hash is that of the graph.
	Hash string
}

// stampKey is the object that says when the store was last verified.
const stampKey = "verified.json"

// stampFormat is the version of the stamp's JSON.
const stampFormat = 1

// Stamp says when a store was last verified, and with what outcome.
type Stamp struct {
	Format  int       `json:"format"`
	At      time.Time `json:"at"`
	Objects int64     `json:"objects"`
	Bytes   int64     `json:"bytes"`
	Damage  int       `json:"damage"`
}

// LastStamp returns the stamp of a store, nil if it was never verified.
func LastStamp(ctx context.Context, store sink.Store) (*Stamp, error) {
	data, err := sink.ReadAll(ctx, store, stampKey)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Stamp{}
	if sealed, err := seal.Decode(data, sink.PlaceOf(store, stampKey), s); err != nil || !sealed {
		return nil, nil //nolint:nilerr // a stamp that cannot be read says nothing
	}
	return s, nil
}

// Store checks every object of a store. Findings are what two looks in a row have found, so that a running
// pipeline, which writes and removes objects meanwhile, gives no false ones.
func Store(ctx context.Context, o Options) (*audit.Audit, []Graph, error) {
	o.Progress, o.Log = ambient.OrDiscard(o.Progress), ambient.Log(o.Log)
	o.Progress.Stage("verify", 0)
	found, shards, err := CheckOnce(ctx, o, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(found.Findings) > 0 {
		o.Progress.Stage("look again at what was found", 0)
		first := map[string]bool{}
		for _, f := range found.Findings {
			first[f.Object] = true
		}
		again, _, err := CheckOnce(ctx, o, func(f audit.Finding) bool { return o.Repair && first[f.Object] })
		if err != nil {
			return nil, nil, err
		}
		confirmed := again.Findings[:0]
		for _, f := range again.Findings {
			if first[f.Object] {
				confirmed = append(confirmed, f)
			}
		}
		again.Findings = confirmed
		found = again
	}
	var graphs []Graph
	if o.Deep {
		if graphs, err = deep(ctx, o, shards); err != nil {
			return nil, nil, err
		}
	}
	damage := found.Damage()
	for _, g := range graphs {
		if g.Damage != "" {
			damage++
		}
	}
	data, err := seal.JSON(Stamp{stampFormat, time.Now().UTC(), found.Objects, found.Bytes, damage},
		sink.PlaceOf(o.Store, stampKey))
	if err == nil {
		if err := sink.PutBytes(ctx, o.Store, stampKey, data); err != nil && ctx.Err() == nil {
			o.Log.Warn("the store does not say that it was verified, as it takes no writes; the verdict stands",
				"error", err)
		}
	}
	return found, graphs, errors.Join(err, ctx.Err())
}

// CheckOnce checks every object of the store, and returns the number of shards as well. may says what may be repaired,
// nil for nothing. Beside a pipeline, what one look has found may be what the pipeline was about to write or remove.
func CheckOnce(ctx context.Context, o Options, may func(audit.Finding) bool) (*audit.Audit, int, error) {
	a, err := audit.New(ctx, o.Store)
	if err != nil {
		return nil, 0, err
	}
	a.May, a.Progress = may, o.Progress
	if err := stamp(ctx, a); err != nil {
		return nil, 0, err
	}
	shards, err := commitlog.AuditIdentity(ctx, a)
	if err != nil {
		return nil, 0, err
	}
	if err := commitlog.AuditID(ctx, a); err != nil {
		return nil, 0, err
	}
	if err := commitlog.AuditReshard(ctx, a); err != nil {
		return nil, 0, err
	}
	if err := sources.Audit(ctx, a); err != nil {
		return nil, 0, err
	}
	for p := range shards {
		if err := commitlog.AuditShard(ctx, a, p); err != nil {
			return nil, 0, err
		}
	}
	if err := o.Generations.Audit(ctx, a); err != nil {
		return nil, 0, err
	}
	if err := lease.Audit(ctx, a, time.Now()); err != nil {
		return nil, 0, err
	}
	a.Orphans()
	return a, shards, nil
}

// stamp checks the stamp of the last verification.
func stamp(ctx context.Context, a *audit.Audit) error {
	if !a.Has(stampKey) {
		return nil
	}
	s, err := LastStamp(ctx, a.Store)
	if err != nil {
		return err
	}
	a.Document(stampKey, s != nil)
	if s != nil {
		return nil
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: stampKey, What: "it is not what was stored",
		Lost: "when this store was last verified"}, "this verification writes it again",
		func(context.Context) error { return nil })
}

// Graph is the outcome of computing a graph again.
type Graph struct {
	// Generation is 0 for the graph at the newest manifests.
	Generation int64 `json:"generation"`
	Nodes      int64 `json:"nodes"`
	// Orders that have items. A generation's graph has none.
	Orders int64 `json:"orders,omitempty"`
	// Vectors of nodes. A generation's graph has none.
	Vectors int64  `json:"vectors,omitempty"`
	Hash    string `json:"graph_hash"`
	// Damage says how the graph differs from what was stored, "" if it does not.
	Damage string `json:"damage,omitempty"`

	horizon rows.Horizon // of orders
}

func (g Graph) String() string {
	of := "the newest manifests"
	if g.Generation > 0 {
		of = fmt.Sprintf("generation %d", g.Generation)
	}
	orders := ""
	if g.Orders > 0 {
		orders = fmt.Sprintf("%d orders, ", g.Orders)
	}
	vectors := ""
	if g.Vectors > 0 {
		vectors = fmt.Sprintf("%d vectors, ", g.Vectors)
	}
	s := fmt.Sprintf("graph of %s: %d nodes, %s%s%.12s", of, g.Nodes, orders, vectors, g.Hash)
	if g.Damage != "" {
		return s + ", DAMAGED: " + g.Damage
	}
	return s
}

// deep computes the graph of every complete generation, and the newest one, from the rows.
func deep(ctx context.Context, o Options, shards int) (graphs []Graph, err error) {
	complete, err := o.Generations.Complete(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range complete {
		// Without attributes, of which a generation knows nothing.
		graph := compute(ctx, o, b.Cut, false, commitlog.Cut.Graph)
		graph.Generation = b.Generation
		if graph.Damage == "" && graph.Hash != b.Hash {
			graph.Damage = fmt.Sprintf("the generation was built on the graph %.12s", b.Hash)
		}
		graphs = append(graphs, graph)
	}
	newest, err := commitlog.CurrentCut(ctx, o.Store, shards)
	if err != nil {
		return append(graphs, Graph{Damage: err.Error()}), ctx.Err()
	}
	graph := compute(ctx, o, newest, true, commitlog.Cut.Facts)
	var nodes, orders int64
	for p, seq := range newest {
		if seq == 0 {
			continue
		}
		head, err := commitlog.ReadManifest(ctx, o.Store, p, seq)
		if err != nil {
			graph.Damage = err.Error()
			break
		}
		nodes, orders = nodes+head.Nodes, orders+head.Orders
	}
	// Manifests count what is left in a state of orders that have expired.
	if graph.Damage == "" && (graph.Nodes != nodes || graph.Orders > orders ||
		graph.Orders < orders && graph.horizon == 0) {
		graph.Damage = fmt.Sprintf("the newest manifests count %d live nodes and %d orders", nodes, orders)
	}
	return append(graphs, graph), ctx.Err()
}

// compute computes the graph that rows of a cut state, with or without its orders and vectors.
func compute(ctx context.Context, o Options, cut commitlog.Cut, all bool,
	read func(commitlog.Cut, context.Context, sink.Store, int) iter.Seq2[commitlog.Row, error]) (g Graph) {
	o.Progress.Stage("compute the graph again", 0)
	hasher := commitlog.NewGraphHasher()
	var err error
	if g.horizon, err = cut.OrderHorizon(ctx, o.Store); err != nil {
		return Graph{Damage: err.Error()}
	}
	for shard := range len(cut) {
		for row, err := range read(cut, ctx, o.Store, shard) {
			if err != nil {
				return Graph{Damage: err.Error()}
			}
			hasher.Add(&row.Row)
			if !row.Deleted {
				g.Nodes++
			}
			o.Progress.Add(1)
		}
		if !all {
			continue
		}
		for row, err := range cut.Orders(ctx, o.Store, shard, g.horizon) {
			if err != nil {
				return Graph{Damage: err.Error()}
			}
			hasher.AddOrder(&row)
			if !row.Deleted {
				g.Orders++
			}
			o.Progress.Add(1)
		}
		for row, err := range cut.Vectors(ctx, o.Store, shard) {
			if err != nil {
				return Graph{Damage: err.Error()}
			}
			hasher.AddVectors(&row.Vectors)
			g.Vectors += int64(len(row.Names))
			o.Progress.Add(1)
		}
	}
	g.Hash = hasher.Sum()
	return g
}
