// Package logview is the commit log as training and answers read it: it stands between stream and train, which do
// not know each other.
package logview

import (
	"context"
	"errors"
	"iter"
	"sync"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// Cut is a view of the commit log as a generation's source. It implements generation.Source.
type Cut struct {
	store  sink.Store
	shards int
	cut    commitlog.Cut
	hash   string

	mu      sync.Mutex
	horizon *rows.Horizon // of orders, nil before it was read
}

// OpenCut returns the given cut. Without one, it returns the cut at the newest manifests of all shards.
func OpenCut(ctx context.Context, store sink.Store, shards int, at map[int]int64) (*Cut, error) {
	if at != nil {
		return &Cut{store: store, shards: shards, cut: at}, nil
	}
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	return &Cut{store: store, shards: shards, cut: cut}, nil
}

// Cut names the cut: the newest manifest included, per shard.
func (c *Cut) Cut() map[int]int64 { return c.cut }

// Rows yields the newest row of every node, shard by shard.
func (c *Cut) Rows(ctx context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		hasher := commitlog.NewGraphHasher()
		for shard := range c.shards {
			for r, err := range c.cut.Graph(ctx, c.store, shard) {
				if err != nil {
					yield(generation.Row{}, err)
					return
				}
				hasher.Add(&r.Row)
				if !yield(generation.Row{Row: r.Row, Shard: shard, Seq: r.Seq}, nil) {
					return
				}
			}
		}
		c.hash = hasher.Sum()
	}
}

// orderHorizon says which orders count no more. It reads manifests once.
func (c *Cut) orderHorizon(ctx context.Context) (rows.Horizon, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.horizon == nil {
		h, err := c.cut.OrderHorizon(ctx, c.store)
		if err != nil {
			return 0, err
		}
		c.horizon = &h
	}
	return *c.horizon, nil
}

// Hash returns the graph's hash. It is known once Rows has yielded every row.
func (c *Cut) Hash() string { return c.hash }

// Log is the cut as the tasks of a build read it.
func (c *Cut) Log() work.Log { return shardLogs{c} }

type shardLogs struct{ cut *Cut }

// Cut implements work.Log.
func (l shardLogs) Cut() map[int]int64 { return l.cut.Cut() }

// compressed is about how many bytes of rows a byte of a stored object stands for.
const compressed = 3

// Size returns how much there is to read, as the manifests say, and where it can be divided.
func (l shardLogs) Size(ctx context.Context) (size stages.Size, err error) {
	layouts := make([]commitlog.Layout, l.cut.shards)
	for shard := range layouts {
		if layouts[shard], err = l.cut.cut.Layout(ctx, l.cut.store, shard); err != nil {
			return size, err
		}
		rows, bytes := layouts[shard].Size()
		size.Rows, size.Bytes = size.Rows+rows, size.Bytes+compressed*bytes
		m, err := l.facts(ctx, shard)
		if err != nil {
			return size, err
		}
		if m != nil {
			size.Nodes, size.Links = size.Nodes+m.Nodes, size.Links+2*m.Edges
		}
	}
	if size.Orders, err = l.haveOrders(ctx, layouts); err != nil {
		return size, err
	}
	if size.Vectors, err = l.haveVectors(ctx, layouts); err != nil {
		return size, err
	}
	for shard, layout := range layouts {
		after := int64(0)
		for _, to := range layout.Divide(stages.SplitRows(size.Rows)) {
			size.Splits = append(size.Splits, stages.Split{Shard: shard, After: after, To: to})
			after = to
		}
	}
	return size, nil
}

// HasOrders says whether there is an order that counts.
func (c *Cut) HasOrders(ctx context.Context) (bool, error) {
	layouts := make([]commitlog.Layout, c.shards)
	for shard := range layouts {
		var err error
		if layouts[shard], err = c.cut.Layout(ctx, c.store, shard); err != nil {
			return false, err
		}
	}
	return shardLogs{c}.haveOrders(ctx, layouts)
}

// haveOrders says whether there is an order that counts.
func (l shardLogs) haveOrders(ctx context.Context, layouts []commitlog.Layout) (bool, error) {
	for shard, layout := range layouts {
		if !layout.Has(rows.Orders.Name) {
			continue
		}
		for _, err := range l.Orders(ctx, shard) {
			return err == nil, err
		}
	}
	return false, nil
}

// haveVectors says whether a node has a vector.
func (l shardLogs) haveVectors(ctx context.Context, layouts []commitlog.Layout) (bool, error) {
	for shard, layout := range layouts {
		if !layout.Has(rows.NodeVectors.Name) {
			continue
		}
		for r, err := range l.Vectors(ctx, shard) {
			if err != nil || len(r.Names) > 0 {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// facts returns the manifest that counts a shard's nodes and edges at the cut, nil if there is none or it is gone: they
// decide how a build is divided, not what it builds.
func (l shardLogs) facts(ctx context.Context, shard int) (*commitlog.Manifest, error) {
	seq := l.cut.cut[shard]
	if seq == 0 {
		return nil, nil
	}
	m, err := commitlog.ReadCommitted(ctx, l.cut.store, shard, seq)
	if errors.Is(err, commitlog.ErrRemoved) || errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	return m, err
}

// Rows yields the committed rows of a split, and the times of attributes that changed alone.
func (l shardLogs) Rows(ctx context.Context, s stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for r, err := range l.cut.cut.Logged(ctx, l.cut.store, s.Shard, s.After, s.To) {
			row := generation.Row{Row: r.Row.Row, Shard: s.Shard, Seq: r.Seq, TimeOnly: r.TimeOnly}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Orders yields what counts of the newest row of every order of a shard.
func (l shardLogs) Orders(ctx context.Context, shard int) iter.Seq2[rows.Order, error] {
	return func(yield func(rows.Order, error) bool) {
		h, err := l.cut.orderHorizon(ctx)
		if err != nil {
			yield(rows.Order{}, err)
			return
		}
		l.cut.cut.Orders(ctx, l.cut.store, shard, h)(yield)
	}
}

// Vectors yields the newest row of vectors of every node and input of a shard.
func (l shardLogs) Vectors(ctx context.Context, shard int) iter.Seq2[rows.Vectors, error] {
	return func(yield func(rows.Vectors, error) bool) {
		for r, err := range l.cut.cut.Vectors(ctx, l.cut.store, shard) {
			if !yield(r.Vectors, err) || err != nil {
				return
			}
		}
	}
}

// Fingerprint returns the fingerprint of an empty graph.
func (l shardLogs) Fingerprint() work.Fingerprint { return commitlog.NewGraphHasher() }
