package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/service/ingesting"
	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/sources"
	"giantstream/stream/verify"
	"giantstream/train/generation"
	"giantstream/train/generation/drift"
)

// Status is the state of a pipeline in its store, and what it has yet to read from the
// brokers.
type Status struct {
	Store    string             `json:"store"`
	Identity commitlog.Identity `json:"identity"`
	Shards   []Shard            `json:"shards"`
	Nodes    int64              `json:"nodes"`
	Edges    int64              `json:"edges"`
	// Orders that have lines, and their lines.
	Orders int64 `json:"orders,omitempty"`
	Lines  int64 `json:"order_lines,omitempty"`
	// Vectors says by name how many nodes have a vector.
	Vectors map[string]int64 `json:"vectors,omitempty"`
	// OrdersAfter is the time after which orders were placed that count, nil if all do.
	OrdersAfter *time.Time `json:"orders_after,omitempty"`
	// Read is what became of the records that were committed, by input, since the pipeline began.
	Read []ingesting.InputOutcomes `json:"read,omitempty"`
	// Lost is what topics that are repartitioned had deleted before it was copied.
	Lost        []commitlog.ShardLost `json:"lost,omitempty"`
	Generations []Generation          `json:"generations"`
	// Served is the generation that is to be served, 0 for none. Publishing counts the shards that have manifests, of
	// which Published have its embeddings on the topic.
	Served int64 `json:"served,omitempty"`
	// Canary is the generation that only the canary topic gets, nil for none.
	Canary     *Canary `json:"canary,omitempty"`
	Publishing struct {
		Shards    int `json:"shards"`
		Published int `json:"published"`
	} `json:"publishing,omitzero"`
	// Undecided is why nobody knows which generation is to be served, "" if that is known.
	Undecided string `json:"undecided,omitempty"`
	// Decisions are what people have decided about generations, oldest first.
	Decisions []generation.Decision `json:"decisions,omitempty"`
	// History are the ready generations before the newest, also those that were removed since.
	History []generation.Summary `json:"history,omitempty"`
	// Drift is what a process that refreshes has measured last, nil for nothing about the generation that is served.
	Drift *drift.Document `json:"drift,omitempty"`
	// Refresh is the process that builds a generation, nil for none. A killed process stays here
	// until another takes over.
	Refresh *lease.Record `json:"refresh,omitempty"`
	// Verified is nil if the store was never verified. Missing are objects of the newest rows and of the current
	// generation that are not there with their size.
	Verified *verify.Stamp `json:"verified,omitempty"`
	Missing  []string      `json:"missing,omitempty"`
	// Removal is when the next files go; nil where it was not looked at.
	Removal *Removal `json:"removal,omitempty"`
	// DeadLetters are those that are open, nil where there are no brokers to ask, or they have not
	// answered.
	DeadLetters *service.DeadLetterCount `json:"dead_letters,omitempty"`
	// Cost is nil unless it was asked for.
	Cost *Cost `json:"cost,omitempty"`
	// Lag is nil where there are no brokers to ask.
	Lag *Lags `json:"lag,omitempty"`

	heads   []*commitlog.Manifest
	horizon rows.Horizon // of orders
}

// Canary is a generation that only the canary topic gets. Published counts the shards whose nodes it has.
type Canary struct {
	Generation int64 `json:"generation"`
	Published  int   `json:"published"`
}

// Shard is how far a shard is.
type Shard struct {
	Shard     int                 `json:"shard"`
	Seq       int64               `json:"seq"`
	Committed time.Time           `json:"committed,omitzero"`
	Worker    string              `json:"worker,omitempty"` // that committed it
	Nodes     int64               `json:"nodes"`
	Edges     int64               `json:"edges"`
	Orders    int64               `json:"orders,omitempty"`
	Lines     int64               `json:"order_lines,omitempty"`
	Vectors   map[string]int64    `json:"vectors,omitempty"`
	Next      map[string]int64    `json:"next_offsets,omitempty"`
	Published commitlog.Published `json:"published"`
	// Canary is how far the canary topic is, nil if nothing was ever published to it.
	Canary *commitlog.Published `json:"canary,omitempty"`
	// Lost is what the topics had deleted before it was read, and nobody has accepted.
	Lost []commitlog.ShardLost `json:"lost,omitempty"`
	// Checkpoint is the newest copy of the shard's state, nil for none.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Standby says which worker keeps a copy of a checkpoint, nil for none.
	Standby *checkpoint.Standby `json:"standby,omitempty"`
	// Damage says what of the commit log is damaged. The newest manifest is unknown then.
	Damage string `json:"damage,omitempty"`

	broker map[string]int64 // Next as the brokers count
}

// Checkpoint is the newest copy of a shard's state.
type Checkpoint struct {
	Seq     int64     `json:"seq"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
}

// Generation is what status says of a generation.
type Generation struct {
	Generation int64             `json:"generation"`
	Status     generation.Status `json:"status"`
	// Standing is what people have decided about it: "pinned", "withdrawn", "promoted" or "waiting"; "" for nothing.
	Standing  string    `json:"standing,omitempty"`
	Encoder   string    `json:"encoder,omitempty"`
	TextOnly  string    `json:"text_only,omitempty"` // why the encoder knows no links
	Nodes     int       `json:"nodes"`
	Created   time.Time `json:"created,omitzero"`
	Finished  time.Time `json:"finished,omitzero"`
	GraphHash string    `json:"graph_hash,omitempty"`
	// Figures are measured on held-out data, text alone first.
	Figures []generation.Figures `json:"figures,omitempty"`
	// NeighboursKept is the share of the ten nearest that stayed since the generation before, nil without one.
	NeighboursKept *float64 `json:"neighbours_kept,omitempty"`
	// Warning says that the generation is worse than text alone, in what, and what became of it.
	Warning string `json:"warning,omitempty"`
	// Damage says what of a damaged generation is damaged.
	Damage string `json:"damage,omitempty"`
}

// Damaged is the status of a generation that is damaged, whatever its document says.
const Damaged generation.Status = "damaged"

// A status checks that this many of the newest objects exist.
const (
	lookRows  = 32 // per shard
	lookParts = 100
)

// checkNewest notes when the store was verified, and whether its newest objects exist. It reads none of them.
func (st *Status) checkNewest(ctx context.Context, store sink.Store) (err error) {
	if st.Verified, err = verify.LastStamp(ctx, store); err != nil {
		return err
	}
	for _, s := range st.Shards {
		if s.Damage != "" {
			continue
		}
		missing, err := commitlog.Missing(ctx, store, s.Shard, s.Seq, lookRows)
		if err != nil {
			return err
		}
		st.Missing = append(st.Missing, missing...)
	}
	missing, err := generation.Missing(ctx, store, lookParts)
	st.Missing = append(st.Missing, missing...)
	return err
}

// Read reads what the store has of a pipeline: its shards and generations, and who builds one.
func Read(ctx context.Context, store sink.Store, id commitlog.Identity) (st *Status, err error) {
	st = &Status{Store: store.URL(), Identity: id, Vectors: map[string]int64{}}
	for p := range id.Shards {
		s, err := st.readShard(ctx, store, p)
		if err != nil {
			return nil, err
		}
		st.Nodes += s.Nodes
		st.Edges += s.Edges
		st.Orders += s.Orders
		st.Lines += s.Lines
		for name, n := range s.Vectors {
			st.Vectors[name] += n
		}
		st.Shards = append(st.Shards, s)
	}
	if st.horizon > 0 {
		after := time.UnixMicro(int64(st.horizon)).UTC()
		st.OrdersAfter = &after
	}
	if err := st.readGenerations(ctx, store); err != nil {
		return nil, err
	}
	holder, err := lease.Newest(ctx, store, refreshing.RefreshLease)
	if err == nil && holder != nil && !holder.Released {
		st.Refresh = holder
	}
	return st, err
}

// readShard reads what the store has of a shard, and notes its head.
func (st *Status) readShard(ctx context.Context, store sink.Store, p int) (s Shard, err error) {
	s.Shard = p
	if s.Published, err = commitlog.LoadPublished(ctx, store, p); err != nil {
		return s, err
	}
	canary, err := commitlog.Canary.Load(ctx, store, p)
	if err != nil {
		return s, err
	}
	if canary.Generation > 0 {
		s.Canary = &canary
	}
	m, err := commitlog.Head(ctx, store, p)
	if errors.Is(err, commitlog.ErrDamaged) {
		s.Damage, err = err.Error(), nil
	}
	if err != nil {
		return s, err
	}
	st.heads = append(st.heads, m)
	if m != nil {
		s.Seq, s.Committed, s.Nodes, s.Edges, s.Next = m.Seq, m.Created, m.Nodes, m.Edges, m.Next
		s.Orders, s.Lines, s.Vectors = m.Orders, m.Lines, m.Vectors
		st.horizon = max(st.horizon, m.OrderHorizon)
		s.Worker = m.Writer
		s.Lost, s.broker = m.ShardLosses(), m.BrokerOffsets()
	}
	c, err := checkpoint.Newest(ctx, store, p)
	if err != nil {
		return s, err
	}
	if c != nil {
		s.Checkpoint = &Checkpoint{c.Seq, c.Bytes(), c.Created}
	}
	warm, err := checkpoint.ReadStandby(ctx, store, p)
	if err == nil && warm.Number > 0 {
		s.Standby = &warm.Standby
	}
	return s, err
}

// CountRead sets Read.
func (st *Status) CountRead(cfg *config.Config) {
	st.Read = ingesting.OutcomesOf(st.heads, wiring.TopicsOf(cfg))
}

// readGenerations reads what the store has of generations, and what people have decided about them.
func (st *Status) readGenerations(ctx context.Context, store sink.Store) error {
	latest, choice, err := st.readChoice(ctx, store)
	if err != nil {
		return err
	}
	st.Decisions = choice.Decisions
	gens, err := generation.Numbers(ctx, store)
	if err != nil {
		return err
	}
	for _, g := range gens {
		if err := st.readGeneration(ctx, store, g, &latest, choice); err != nil {
			return err
		}
	}
	if latest.Current == nil {
		return nil
	}
	st.Served = latest.Current.Generation
	if d := latest.Canary; d != nil {
		st.Canary = &Canary{Generation: d.Generation}
	}
	if st.Drift, err = drift.Load(ctx, store); err != nil {
		return err
	}
	if st.Drift != nil && st.Drift.Generation != st.Served {
		st.Drift = nil
	}
	st.countPublished()
	return nil
}

// readGeneration adds a generation, unless it was removed meanwhile.
func (st *Status) readGeneration(ctx context.Context, store sink.Store, g int64, latest *generation.Latest,
	choice *generation.Choice) error {
	d, err := generation.Load(ctx, store, g)
	switch {
	case errors.Is(err, generation.ErrNone):
		return nil
	case errors.Is(err, generation.ErrDamaged):
		st.Generations = append(st.Generations, Generation{Generation: g, Status: Damaged, Damage: err.Error()})
		return nil
	case err != nil:
		return err
	}
	if d.Complete() {
		st.History = d.History
	}
	summary := d.Summary()
	one := Generation{Generation: g, Status: d.Status,
		Standing: choice.Standing(d), Encoder: d.Encoder.Kind, TextOnly: d.TextOnly, Nodes: d.Graph.Nodes,
		Created: d.Created, Finished: d.Finished, GraphHash: d.GraphHash, Figures: summary.Figures,
		NeighboursKept: summary.NeighboursKept, Warning: GateWarning(d)}
	mark, err := generation.Damaged(ctx, store, g)
	if err != nil {
		return err
	}
	if mark != nil {
		one.Status, one.Damage = Damaged, mark.Reason
	}
	if d.Status == generation.Refused && latest.Current != nil && latest.Current.Generation == g {
		one.Warning = fmt.Sprintf("generation %d is served, because people have decided so, although %s", g,
			d.Warning())
	}
	st.Generations = append(st.Generations, one)
	return nil
}

// countPublished counts the shards that are published with the generation that is served, and with the canary.
func (st *Status) countPublished() {
	for _, s := range st.Shards {
		if s.Seq == 0 {
			continue
		}
		st.Publishing.Shards++
		if s.Published.Generation == st.Served {
			st.Publishing.Published++
		}
		if c := st.Canary; c != nil && s.Canary != nil && s.Canary.Generation == c.Generation {
			c.Published++
		}
	}
}

// readChoice reads what is to be served. A choice that is damaged is noted, and no error.
func (st *Status) readChoice(ctx context.Context, store sink.Store) (generation.Latest, *generation.Choice, error) {
	latest, err := generation.Newest(ctx, store)
	choice := &generation.Choice{}
	if err == nil {
		choice, err = generation.LoadChoice(ctx, store)
	}
	if errors.Is(err, generation.ErrChoiceDamaged) {
		st.Undecided, err = err.Error(), nil
	}
	return latest, choice, err
}

// Words says what a generation is: its status, whether it is served, and what people have decided about it.
func (st *Status) Words(g *Generation) string {
	words := string(g.Status)
	if g.Generation == st.Served {
		words = "served"
	}
	if g.Standing != "" && g.Status != Damaged {
		words += ", " + g.Standing
	}
	return words
}

// Complete adds what the topics that are repartitioned have lost and when files go, and looks at the newest objects.
func (st *Status) Complete(ctx context.Context, store sink.Store, cfg *config.Config) error {
	for _, topic := range wiring.TopicsOf(cfg).Sources() {
		lost, err := sources.Lost(ctx, store, topic)
		if err != nil {
			return err
		}
		st.Lost = append(st.Lost, lost...)
	}
	if err := st.readRemoval(ctx, store, cfg.Compaction); err != nil {
		return err
	}
	return st.checkNewest(ctx, store)
}

// GateWarning says what is wrong with a generation that is worse than text alone, and what became of
// it; "" for any other.
func GateWarning(d *generation.Doc) string {
	warning := d.Warning()
	switch {
	case warning == "":
		return ""
	case d.Status == generation.Refused:
		return fmt.Sprintf("generation %d was refused by refresh.quality_gate, and generation %d keeps serving: %s. "+
			"The next refresh tries again; with another encoder or gate, 'giantstream build' builds at once",
			d.Generation, d.Parent, warning)
	}
	if d.QualityGate == generation.GateBlock {
		return fmt.Sprintf("generation %d is served, since there is none before it, although %s. "+
			"Try another train.encoder", d.Generation, warning)
	}
	return fmt.Sprintf("generation %d is served although %s. Try another train.encoder; "+
		"refresh.quality_gate: block would keep the generation before", d.Generation, warning)
}
