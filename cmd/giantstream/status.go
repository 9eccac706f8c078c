package main

import (
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
	"giantstream/sink/lease"
	"giantstream/stream"
	"giantstream/train/generation"
)

// pipelineStatus is what the store tells about a pipeline, and the brokers
// about what it has yet to read.
type pipelineStatus struct {
	Store       string             `json:"store"`
	Identity    stream.Identity    `json:"identity"`
	Shards      []shardStatus      `json:"shards"`
	Nodes       int64              `json:"nodes"`
	Edges       int64              `json:"edges"`
	Generations []generationStatus `json:"generations"`
	// Refresh is the process that builds a generation now, nil for none. One
	// that was killed stays here until the next takes over.
	Refresh *lease.Record `json:"refresh,omitempty"`
	// Lag is nil where there are no brokers to ask.
	Lag *lags `json:"lag,omitempty"`
}

type shardStatus struct {
	Shard     int              `json:"shard"`
	Seq       int64            `json:"seq"`
	Committed time.Time        `json:"committed,omitzero"`
	Nodes     int64            `json:"nodes"`
	Edges     int64            `json:"edges"`
	Next      map[string]int64 `json:"next_offsets,omitempty"`
	Published stream.Published `json:"published"`
	// Checkpoint is the newest copy of the shard's state, nil for none.
	Checkpoint *stateCheckpoint `json:"checkpoint,omitempty"`
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
	Nodes      int               `json:"nodes"`
	Finished   time.Time         `json:"finished,omitzero"`
	GraphHash  string            `json:"graph_hash,omitempty"`
}

func (a *app) status() *cobra.Command {
	var (
		flags  pipelineFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show shards, offsets, lag and generations, as store and brokers have them",
		Example: `  giantstream status -c pipeline.yaml
  giantstream status --store ./store --json | jq .nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			st, err := readStatus(cmd.Context(), p)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, st)
			}
			return st.print(a.out)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func readStatus(ctx context.Context, in *pipeline) (st *pipelineStatus, err error) {
	store := in.store
	st = &pipelineStatus{Store: store.URL(), Identity: in.id}
	for p := range in.id.Shards {
		s := shardStatus{Shard: p}
		if s.Published, err = stream.LoadPublished(ctx, store, p); err != nil {
			return nil, err
		}
		m, err := stream.Head(ctx, store, p)
		if err != nil {
			return nil, err
		}
		if m != nil {
			s.Seq, s.Committed, s.Nodes, s.Edges, s.Next = m.Seq, m.Created, m.Nodes, m.Edges, m.Next
		}
		c, err := stream.NewestCheckpoint(ctx, store, p)
		if err != nil {
			return nil, err
		}
		if c != nil {
			s.Checkpoint = &stateCheckpoint{c.Seq, c.Bytes(), c.Created}
		}
		st.Nodes += s.Nodes
		st.Edges += s.Edges
		st.Shards = append(st.Shards, s)
	}
	st.Lag = readLag(ctx, in, func(shard int) map[string]int64 { return st.Shards[shard].Next })
	gens, err := generation.Numbers(ctx, store)
	if err != nil {
		return nil, err
	}
	for _, g := range gens {
		d, err := generation.Load(ctx, store, g)
		if errors.Is(err, generation.ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st.Generations = append(st.Generations, generationStatus{g, d.Status, d.Encoder.Kind, d.Graph.Nodes, d.Finished, d.GraphHash})
	}
	holder, err := lease.Newest(ctx, store, service.RefreshLease)
	if err == nil && holder != nil && !holder.Released {
		st.Refresh = holder
	}
	return st, err
}

func (st *pipelineStatus) print(out io.Writer) error {
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
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\tg%d to %d\t%s\t%s\n", s.Shard, s.Seq, committed, st.Lag.of(s.Shard),
			console.Count(s.Nodes), console.Count(s.Edges), s.Published.Generation, s.Published.Seq, checkpoint, offsets(s.Next))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, st.Lag.note())
	if r := st.Refresh; r != nil {
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
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", g.Generation, g.Status, g.Encoder, console.Count(g.Nodes), finished, hash)
	}
	return w.Flush()
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
