package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/status"
	"giantstream/cmd/internal/wiring"
	"giantstream/sink/embedding"
	"giantstream/sink/lease"
	"giantstream/train/generation/drift"
)

// Status is 'giantstream status'.
func Status(a *command.App) *cobra.Command {
	var (
		flags   command.PipelineFlags
		asJSON  bool
		price   status.Prices
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
			st, err := waitAtMost(cmd.Context(), timeout, func(ctx context.Context) (*status.Status, error) {
				p, err := a.Open(ctx, &flags)
				if err != nil {
					return nil, err
				}
				st, err := status.Read(ctx, p.Store, p.Identity)
				if err != nil {
					return nil, err
				}
				st.CountRead(p.Config)
				readable, ends, err := wiring.EndOffsets(ctx, p.Config)
				st.Lag = status.LagOf(readable, ends, err, st.Shards)
				st.DeadLetters = status.ReadLetters(ctx, p.Config)
				if err := st.Complete(ctx, p.Store, p.Config); err != nil || !cost {
					return st, err
				}
				c := status.CostOf(p.Config, price)
				st.Cost = &c
				return st, c.AddStored(ctx, p.Store, p.Identity.Shards)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(a.Out, st)
			}
			if err := printStatus(a.Out, st); err != nil || st.Cost == nil {
				return err
			}
			return printCost(a.Out, st.Cost)
		},
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "give up on a store or brokers that do not answer")
	cmd.Flags().BoolVar(&cost, "cost", false, "also print what the store costs per shard and month, at list prices")
	registerPrices(cmd, &price)
	return cmd
}

// waitAtMost calls do, and returns an error if it takes longer than most. A directory on a file system that
// hangs cannot be told to stop: do then goes on until the process ends.
func waitAtMost[T any](ctx context.Context, most time.Duration, do func(context.Context) (T, error)) (T, error) {
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

// printDrift prints what has drifted since the cut of the generation being served.
func printDrift(out io.Writer, d *drift.Document) {
	if d == nil {
		return
	}
	fmt.Fprintf(out, "\ndrift since the cut of generation %d, measured at %s:\n", d.Generation,
		d.At.UTC().Format(time.DateTime))
	due := false
	for f := range d.Findings(d.Thresholds) {
		fmt.Fprintf(out, "  %s\n", f)
		due = due || f.Exceeded
	}
	if due && d.Changes < d.NeedsChanges {
		fmt.Fprintf(out, "  a refresh is due once %s have changed (refresh.drift.min_changes): %s so far\n",
			command.Plural(d.NeedsChanges, "row"), console.Count(d.Changes))
	}
}

func printStatus(out io.Writer, st *status.Status) error {
	fmt.Fprintf(out, "pipeline %s at %s: %s live nodes, %s edge assertions%s\n\n",
		st.Identity.Name, st.Store, console.Count(st.Nodes), console.Count(st.Edges),
		ordersIn(st)+vectorsIn(st))
	if err := printShards(out, st); err != nil {
		return err
	}
	if err := printRead(out, st); err != nil {
		return err
	}
	printDamage(out, st)
	printRefresh(out, st.Refresh)
	if len(st.Generations) == 0 {
		fmt.Fprintln(out, "\nno generation yet")
		return nil
	}
	if err := printGenerations(out, st); err != nil {
		return err
	}
	printDrift(out, st.Drift)
	printWarnings(out, st)
	return nil
}

// ordersIn says how many orders there are, "" for none.
func ordersIn(st *status.Status) string {
	if st.Orders == 0 {
		return ""
	}
	in := fmt.Sprintf(", %s of %s", command.Plural(st.Orders, "order"), command.Plural(st.Lines, "line"))
	if after := st.OrdersAfter; after != nil {
		in += fmt.Sprintf(" (counted after %s)", after.Format(time.DateTime))
	}
	return in
}

// vectorsIn says how many vectors there are of each name, "" for none.
func vectorsIn(st *status.Status) string {
	in := ""
	for _, name := range slices.Sorted(maps.Keys(st.Vectors)) {
		in += fmt.Sprintf(", %s %s", command.Plural(st.Vectors[name], "vector"), name)
	}
	return in
}

// printShards prints a row per shard, and what waits in the topics.
func printShards(out io.Writer, st *status.Status) error {
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
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\tg%d to %d%s\t%s\t%s\n", s.Shard, s.Seq, committed, lag(st.Lag, s.Shard),
			console.Count(s.Nodes), console.Count(s.Edges), s.Published.Generation, s.Published.Seq, format,
			checkpoint, offsets(s.Next))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, lagNote(st.Lag))
	fmt.Fprint(out, mixedFormats(st.Shards))
	if d := st.DeadLetters; d != nil && d.Total > 0 {
		fmt.Fprintf(out, "\n%s: %s\n", command.Plural(d.Total, "open dead letter"), d)
	}
	if d := st.DeadLetters; d != nil && d.Dismissed > 0 {
		fmt.Fprintf(out, "\n%s, apart from these ('giantstream dlq list --dismissed')\n",
			command.Plural(d.Dismissed, "dismissed dead letter"))
	}
	return nil
}

// printRead prints what became of all records that were committed.
func printRead(out io.Writer, st *status.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nINPUT\tRECORDS\tAPPLIED\tSUPERSEDED\tREPEATED\tEXPIRED\tDEAD LETTERS\tEMPTY\tTOPIC")
	for _, in := range st.Read {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", in.Input, console.Count(in.Sum()),
			console.Count(in.Applied), console.Count(in.Superseded), console.Count(in.Repeated),
			console.Count(in.Expired), console.Count(in.DeadLetters), console.Count(in.Empty), in.Topic)
	}
	return w.Flush()
}

// mixedFormats says which shards are published in which format, "" if it is the same for all.
func mixedFormats(shards []status.Shard) string {
	has := map[string][]string{}
	for _, s := range shards {
		if s.Published.Seq > 0 {
			format := cmp.Or(s.Published.Format, string(embedding.Float32))
			has[format] = append(has[format], strconv.Itoa(s.Shard))
		}
	}
	if len(has) < 2 {
		return ""
	}
	var parts []string
	for _, format := range slices.Sorted(maps.Keys(has)) {
		parts = append(parts, fmt.Sprintf("%s (shards %s)", format, strings.Join(has[format], ", ")))
	}
	return fmt.Sprintf("WARNING: vectors are published as %s. If this lasts, workers differ in sink.embedding_type "+
		"or sink.embedding_dim: give all the same\n", strings.Join(parts, " and as "))
}

// printDamage prints what is lost, which shards a standby could take over, and what the last verification found.
func printDamage(out io.Writer, st *status.Status) {
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
	if st.Removal != nil {
		fmt.Fprintf(out, "superseded files: %s\n", st.Removal)
	}
	for _, key := range st.Missing {
		fmt.Fprintf(out, "WARNING: %s is missing or cut short: 'giantstream verify' says what is lost\n", key)
	}
}

// printRefresh prints which process holds the lease to build a generation.
func printRefresh(out io.Writer, r *lease.Record) {
	if r != nil && r.Damaged != "" {
		fmt.Fprintf(out, "\nWARNING: the object of refresh lease number %d is damaged (%s); "+
			"the lease expires by itself\n", r.Number, r.Damaged)
	} else if r != nil {
		fmt.Fprintf(out, "\nrefresh: %s is building since %s, last sign of life at %s (its clock), lease number %d\n",
			r.Holder, r.Acquired.UTC().Format(time.DateTime), r.Renewed.UTC().Format(time.TimeOnly), r.Number)
	}
}

// printGenerations prints a row per generation, and how far the served one and the canary are published.
func printGenerations(out io.Writer, st *status.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
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
			g.Generation, st.Words(&g), cmp.Or(g.Encoder, "-"), console.Count(g.Nodes), finished, hash)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p := st.Publishing; p.Published < p.Shards {
		fmt.Fprintf(out, "\nembeddings of generation %d are being published: %d of %s done\n", st.Served, p.Published,
			command.Plural(p.Shards, "shard"))
	}
	if c := st.Canary; c != nil {
		fmt.Fprintf(out, "\ngeneration %d is a canary: the canary topic has it in %d of %s, the embeddings topic has "+
			"generation %d\n'giantstream generations promote %d' has it served, and 'rollback' withdraws it\n",
			c.Generation, c.Published, command.Plural(st.Publishing.Shards, "shard"), st.Served, c.Generation)
	}
	return nil
}

// printWarnings prints which generations are made of the texts alone, and what is wrong with the served generation
// and with those that were refused after it.
func printWarnings(out io.Writer, st *status.Status) {
	if st.Undecided != "" {
		fmt.Fprintf(out, "\nWARNING: %s\n", st.Undecided)
	}
	for _, g := range st.Generations {
		if g.TextOnly != "" {
			fmt.Fprintf(out, "\ngeneration %d is made of the texts alone: %s\n", g.Generation, g.TextOnly)
		}
	}
	for i := len(st.Generations) - 1; i >= 0; i-- {
		g := st.Generations[i]
		if g.Damage != "" {
			fmt.Fprintf(out, "\nWARNING: generation %d is damaged: %s\n"+
				"The one before it is served, and a running pipeline builds a new one.\n", g.Generation, g.Damage)
		}
		if g.Warning != "" {
			fmt.Fprintf(out, "\nWARNING: %s\n", g.Warning)
		}
		if g.Generation == st.Served {
			break
		}
	}
}

// lag prints one shard's lag.
func lag(l *status.Lags, shard int) string {
	if l == nil || l.Error != "" {
		return "-"
	}
	return console.Count(l.Shards[shard])
}

// lagNote explains the lag, or why none is shown, "" if there is nothing to explain.
func lagNote(l *status.Lags) string {
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

func registerPrices(c *cobra.Command, p *status.Prices) {
	*p = status.ListPrices
	c.Flags().Float64Var(&p.Put, "price-put", p.Put, "with --cost: dollars for 1,000 PUT or LIST requests")
	c.Flags().Float64Var(&p.Get, "price-get", p.Get, "with --cost: dollars for 1,000 GET requests")
	c.Flags().Float64Var(&p.Byte, "price-gb", p.Byte, "with --cost: dollars for 1 GB (10^9 bytes) and month")
}

func printCost(out io.Writer, c *status.Cost) error {
	fmt.Fprintf(out, "\nper shard and month, if every window has changes (%s windows):\n\n",
		console.Count(int64(c.Windows)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tPUT\tGET\tLIST\tDOLLARS\t")
	for _, p := range append(c.Parts, status.CostPart{Name: "requests", Requests: c.Requests}) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t\n", p.Name, console.Count(int64(p.Puts)), console.Count(int64(p.Gets)),
			console.Count(int64(p.Lists)), c.DollarsOf(p.Requests))
	}
	fmt.Fprintf(w, "bytes\t\t\t\t%.2f\t\n", c.OfBytes())
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
