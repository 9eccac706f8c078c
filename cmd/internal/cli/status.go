package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/verify"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// pipelineStatus is the state of a pipeline in its store, and what it has yet to read from the
// brokers.
type pipelineStatus struct {
	Store    string             `json:"store"`
	Identity commitlog.Identity `json:"identity"`
	Shards   []shardStatus      `json:"shards"`
	Nodes    int64              `json:"nodes"`
	Edges    int64              `json:"edges"`
	// Lost is what topics that are repartitioned had deleted before it was copied.
	Lost        []service.Lost     `json:"lost,omitempty"`
	Generations []generationStatus `json:"generations"`
	// Refresh is the process that builds a generation, nil for none. A killed process stays here
	// until another takes over.
	Refresh *lease.Record `json:"refresh,omitempty"`
	// Verified is nil if the store was never verified. Missing are objects of the newest rows and of the current
	// generation that are not there with their size.
	Verified *verify.Stamp `json:"verified,omitempty"`
	Missing  []string      `json:"missing,omitempty"`
	// DeadLetters are those that are open, nil where there are no brokers to ask, or they have not
	// answered.
	DeadLetters *service.DeadLetterCount `json:"dead_letters,omitempty"`
	// Cost is nil unless it was asked for.
	Cost *cost `json:"cost,omitempty"`
	// Lag is nil where there are no brokers to ask.
	Lag *lags `json:"lag,omitempty"`
}

type shardStatus struct {
	Shard     int                 `json:"shard"`
	Seq       int64               `json:"seq"`
	Committed time.Time           `json:"committed,omitzero"`
	Worker    string              `json:"worker,omitempty"` // that committed it
	Nodes     int64               `json:"nodes"`
	Edges     int64               `json:"edges"`
	Next      map[string]int64    `json:"next_offsets,omitempty"`
	Published commitlog.Published `json:"published"`
	// Lost is what the topics had deleted before it was read, and nobody has accepted.
	Lost []service.Lost `json:"lost,omitempty"`
	// Checkpoint is the newest copy of the shard's state, nil for none.
	Checkpoint *stateCheckpoint `json:"checkpoint,omitempty"`
	// Standby says which worker keeps a copy of a checkpoint, nil for none.
	Standby *commitlog.Standby `json:"standby,omitempty"`
	// Damage says what of the commit log is damaged. The newest manifest is unknown then.
	Damage string `json:"damage,omitempty"`

	broker map[string]int64 // Next as the brokers count
}

type stateCheckpoint struct {
	Seq     int64     `json:"seq"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
}

type generationStatus struct {
	Generation int64             `json:"generation"`
	Status     generation.Status `json:"status"`
	Encoder    string            `json:"encoder,omitempty"`
	TextOnly   string            `json:"text_only,omitempty"` // why the encoder knows no links
	Nodes      int               `json:"nodes"`
	Created    time.Time         `json:"created,omitzero"`
	Finished   time.Time         `json:"finished,omitzero"`
	GraphHash  string            `json:"graph_hash,omitempty"`
	// Figures are measured on held-out data, text alone first.
	Figures []encoderFigures `json:"figures,omitempty"`
	// Warning says that the generation is worse than text alone, in what, and what became of it.
	Warning string `json:"warning,omitempty"`
	// Damage says what of a damaged generation is damaged.
	Damage string `json:"damage,omitempty"`
}

// encoderFigures are the main figures of one encoder; nil for what could not be measured.
type encoderFigures struct {
	Encoder string   `json:"encoder"`
	LinkAUC *float64 `json:"link_auc,omitempty"`
	MRR     *float64 `json:"mrr,omitempty"`
	// Class is the accuracy of the probe with the most labels.
	Class *float64 `json:"class,omitempty"`
}

// damaged is the status of a generation that is damaged, whatever its document says.
const damaged generation.Status = "damaged"

// A status looks whether these many of the newest objects are there.
const (
	lookRows  = 32 // per shard
	lookParts = 100
)

// look notes when the store was verified, and whether its newest objects are there. It reads none of them.
func (st *pipelineStatus) look(ctx context.Context, store sink.Store) (err error) {
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

func (a *app) status() *cobra.Command {
	var (
		flags   pipelineFlags
		asJSON  bool
		price   prices
		cost    bool
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show shards, offsets, lag and generations, as store and brokers have them",
		Example: `  giantstream status -c pipeline.yaml
  giantstream status --store ./store --json | jq .nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := within(cmd.Context(), timeout, func(ctx context.Context) (*pipelineStatus, error) {
				p, err := a.open(ctx, &flags)
				if err != nil {
					return nil, err
				}
				st, err := readStatus(ctx, p.store, p.id)
				if err != nil {
					return nil, err
				}
				readable, ends, err := wiring.EndOffsets(ctx, p.cfg)
				st.Lag = lagOf(readable, ends, err, st.Shards)
				st.DeadLetters = readLetters(ctx, p.cfg)
				if err := st.complete(ctx, p.store, p.cfg); err != nil || !cost {
					return st, err
				}
				c, err := readCost(ctx, p, price)
				st.Cost = &c
				return st, err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, st)
			}
			if err := st.print(a.out); err != nil || st.Cost == nil {
				return err
			}
			return st.Cost.print(a.out)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "give up on a store or brokers that do not answer")
	cmd.Flags().BoolVar(&cost, "cost", false, "also print what the store costs per shard and month, at list prices")
	price.register(cmd)
	return cmd
}

// within calls do, and returns an error if it takes longer than most. A directory on a file system that
// hangs cannot be told to stop: do then goes on until the process ends.
func within[T any](ctx context.Context, most time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do(ctx)
		done <- result{value, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	if errors.Is(r.err, context.DeadlineExceeded) && ctx.Err() != nil {
		r.err = fmt.Errorf("no answer from the store within %v; is it reachable? --timeout waits longer", most)
	}
	return r.value, r.err
}

// readStatus reads what the store has of a pipeline: its shards and generations, and who builds one.
func readStatus(ctx context.Context, store sink.Store, id commitlog.Identity) (st *pipelineStatus, err error) {
	st = &pipelineStatus{Store: store.URL(), Identity: id}
	for p := range id.Shards {
		s := shardStatus{Shard: p}
		if s.Published, err = commitlog.LoadPublished(ctx, store, p); err != nil {
			return nil, err
		}
		m, err := commitlog.Head(ctx, store, p)
		if errors.Is(err, commitlog.ErrDamaged) {
			s.Damage, err = err.Error(), nil
		}
		if err != nil {
			return nil, err
		}
		if m != nil {
			s.Seq, s.Committed, s.Nodes, s.Edges, s.Next = m.Seq, m.Created, m.Nodes, m.Edges, m.Next
			s.Worker = m.Writer
			s.Lost, s.broker = service.LostOf(m), service.BrokerOffsets(m)
		}
		c, err := commitlog.NewestCheckpoint(ctx, store, p)
		if err != nil {
			return nil, err
		}
		if c != nil {
			s.Checkpoint = &stateCheckpoint{c.Seq, c.Bytes(), c.Created}
		}
		warm, err := commitlog.ReadStandby(ctx, store, p)
		if err != nil {
			return nil, err
		}
		if warm.Number > 0 {
			s.Standby = &warm.Standby
		}
		st.Nodes += s.Nodes
		st.Edges += s.Edges
		st.Shards = append(st.Shards, s)
	}
	gens, err := generation.Numbers(ctx, store)
	if err != nil {
		return nil, err
	}
	for _, g := range gens {
		d, err := generation.Load(ctx, store, g)
		if errors.Is(err, generation.ErrNone) {
			continue
		}
		if errors.Is(err, generation.ErrDamaged) {
			st.Generations = append(st.Generations,
				generationStatus{Generation: g, Status: damaged, Damage: err.Error()})
			continue
		}
		if err != nil {
			return nil, err
		}
		st.Generations = append(st.Generations, generationStatus{Generation: g, Status: d.Status,
			Encoder: d.Encoder.Kind, TextOnly: d.TextOnly, Nodes: d.Graph.Nodes, Created: d.Created,
			Finished: d.Finished, GraphHash: d.GraphHash, Figures: figuresOf(d), Warning: gateWords(d)})
		mark, err := generation.Damaged(ctx, store, g)
		if err != nil {
			return nil, err
		}
		if last := &st.Generations[len(st.Generations)-1]; mark != nil {
			last.Status, last.Damage = damaged, mark.Reason
		}
	}
	holder, err := lease.Newest(ctx, store, service.RefreshLease)
	if err == nil && holder != nil && !holder.Released {
		st.Refresh = holder
	}
	return st, err
}

// complete adds what the topics that are repartitioned have lost, and looks at the newest objects.
func (st *pipelineStatus) complete(ctx context.Context, store sink.Store, cfg *config.Config) error {
	for _, topic := range wiring.TopicsOf(cfg).Sources() {
		lost, err := service.LostSource(ctx, store, topic)
		if err != nil {
			return err
		}
		st.Lost = append(st.Lost, lost...)
	}
	return st.look(ctx, store)
}

// figuresOf returns the main figures of a generation's encoders, text alone first.
func figuresOf(d *generation.Doc) []encoderFigures {
	var out []encoderFigures
	for _, e := range d.Evaluation {
		f := encoderFigures{Encoder: e.Encoder}
		if l := e.Links; l != nil {
			f.LinkAUC, f.MRR = &l.AUC, &l.MRR
		}
		if len(e.Probes) > 0 {
			f.Class = &e.Probes[len(e.Probes)-1].Accuracy
		}
		out = append(out, f)
	}
	return out
}

func (st *pipelineStatus) print(out io.Writer) error { //nolint:gocyclo // one part of the page after the other
	fmt.Fprintf(out, "pipeline %s at %s: %s live nodes, %s edge assertions\n\n",
		st.Identity.Name, st.Store, console.Count(st.Nodes), console.Count(st.Edges))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SHARD\tMANIFEST\tCOMMITTED\tLAG\tNODES\tEDGES\tPUBLISHED\tCHECKPOINT\tNEXT OFFSETS")
	for _, s := range st.Shards {
		committed := "-"
		if !s.Committed.IsZero() {
			committed = s.Committed.UTC().Format(time.DateTime)
		}
		checkpoint := "-"
		if c := s.Checkpoint; c != nil {
			checkpoint = fmt.Sprintf("%d (%s)", c.Seq, console.Bytes(c.Bytes))
		}
		format := s.Published.Format
		if format != "" {
			format = " " + format
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\tg%d to %d%s\t%s\t%s\n", s.Shard, s.Seq, committed, st.Lag.of(s.Shard),
			console.Count(s.Nodes), console.Count(s.Edges), s.Published.Generation, s.Published.Seq, format,
			checkpoint, offsets(s.Next))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, st.Lag.note())
	if d := st.DeadLetters; d != nil && d.Total > 0 {
		fmt.Fprintf(out, "\n%s: %s\n", plural(d.Total, "open dead letter"), d)
	}
	for _, l := range st.Lost {
		fmt.Fprintf(out, "LOST: %s\n", l)
	}
	for _, s := range st.Shards {
		if s.Damage != "" {
			fmt.Fprintf(out, "DAMAGED: %s\n", s.Damage)
		}
		for _, l := range s.Lost {
			fmt.Fprintf(out, "LOST: %s\n", l)
		}
	}
	for _, s := range st.Shards {
		if k := s.Standby; k != nil {
			fmt.Fprintf(out, "standby of shard %d: %s has the checkpoint at manifest %d, of %s\n", s.Shard, k.Worker,
				k.Seq, k.Created.UTC().Format(time.DateTime))
		}
	}
	fmt.Fprintf(out, "\n%s\n", verifiedNote(st.Verified))
	for _, key := range st.Missing {
		fmt.Fprintf(out, "WARNING: %s is missing or cut short: 'giantstream verify' says what is lost\n", key)
	}
	if r := st.Refresh; r != nil && r.Damaged != "" {
		fmt.Fprintf(out, "\nWARNING: the object of refresh lease number %d is damaged (%s); "+
			"the lease expires by itself\n", r.Number, r.Damaged)
	} else if r != nil {
		fmt.Fprintf(out, "\nrefresh: %s is building since %s, last sign of life at %s (its clock), lease number %d\n",
			r.Holder, r.Acquired.UTC().Format(time.DateTime), r.Renewed.UTC().Format(time.TimeOnly), r.Number)
	}
	if len(st.Generations) == 0 {
		fmt.Fprintln(out, "\nno generation yet")
		return nil
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "GENERATION\tSTATUS\tENCODER\tNODES\tFINISHED\tGRAPH")
	for _, g := range st.Generations {
		finished := "-"
		if !g.Finished.IsZero() {
			finished = g.Finished.UTC().Format(time.DateTime)
		}
		hash := g.GraphHash
		if len(hash) > 12 {
			hash = hash[:12]
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n",
			g.Generation, g.Status, cmp.Or(g.Encoder, "-"), console.Count(g.Nodes), finished, hash)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, g := range st.Generations {
		if g.TextOnly != "" {
			fmt.Fprintf(out, "\ngeneration %d is made of the texts alone: %s\n", g.Generation, g.TextOnly)
		}
	}
	// Only what is in force: the generation that is served, and one that was refused after it.
	for i := len(st.Generations) - 1; i >= 0; i-- {
		g := st.Generations[i]
		if g.Damage != "" {
			fmt.Fprintf(out, "\nWARNING: generation %d is damaged: %s\n"+
				"The one before it is served, and a running pipeline builds a new one.\n", g.Generation, g.Damage)
		}
		if g.Warning != "" {
			fmt.Fprintf(out, "\nWARNING: %s\n", g.Warning)
		}
		if g.Status == generation.Ready {
			break
		}
	}
	return nil
}

// lettersTimeout bounds the counting of dead letters, which reads their whole topic.
const lettersTimeout = 10 * time.Second

// readLetters counts the open dead letters on brokers that other processes can reach; nil if they do not
// answer in time, which the lag says.
func readLetters(ctx context.Context, cfg *config.Config) *service.DeadLetterCount {
	if cfg.Kafka.Embedded() {
		return nil
	}
	opts, err := wiring.ClientOptions(cfg)
	if err != nil {
		return nil
	}
	c, err := client.New(opts)
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, lettersTimeout)
	defer cancel()
	count, err := service.CountDeadLetters(ctx, c, wiring.TopicsOf(cfg).DeadLetters)
	if err != nil {
		return nil
	}
	return &count
}

// lags has the number of records that each shard's manifests do not cover, or the reason why it is
// not known.
type lags struct {
	Shards []int64 `json:"shards,omitempty"`
	// Held is how many of all shards' records follow the beginning of an open transaction, and wait
	// for its end.
	Held  int64  `json:"held_by_open_transactions,omitempty"`
	Error string `json:"error,omitempty"`
}

// lagOf compares the end offsets of the topics with what is committed. Without an answer from the brokers, the
// status still has what the store has. The result is nil where there are no brokers to ask.
func lagOf(readable, ends map[string][]int64, err error, shards []shardStatus) *lags {
	switch {
	case err != nil:
		return &lags{Error: err.Error()}
	case ends == nil:
		return nil
	}
	l := &lags{Shards: make([]int64, len(shards))}
	for topic, partitions := range ends {
		for p := range min(len(partitions), len(l.Shards)) {
			l.Shards[p] += max(0, partitions[p]-shards[p].broker[topic])
			if p < len(readable[topic]) {
				l.Held += max(0, partitions[p]-readable[topic][p])
			}
		}
	}
	return l
}

// of prints one shard's lag.
func (l *lags) of(shard int) string {
	if l == nil || l.Error != "" {
		return "-"
	}
	return console.Count(l.Shards[shard])
}

// note explains the lag, or why none is shown, "" if there is nothing to explain.
func (l *lags) note() string {
	switch {
	case l == nil:
		return ""
	case l.Error != "":
		return fmt.Sprintf("lag unknown: %s\n", l.Error)
	case l.Held > 0:
		return fmt.Sprintf("open transactions of producers hold back %s records of the lag until they end\n",
			console.Count(l.Held))
	}
	return ""
}

// offsets prints a map of offsets in a stable order.
func offsets(next map[string]int64) string {
	var parts []string
	for topic, o := range next {
		parts = append(parts, fmt.Sprintf("%s=%d", topic, o))
	}
	sort.Strings(parts)
	return strings.Join(parts, " ")
}

func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
