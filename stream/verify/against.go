package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// Differences between the committed rows and the input topics.
type Differences struct {
	Topics  []string `json:"topics"`
	Records int64    `json:"records"`
	Refused int64    `json:"dead_letters"`
	Nodes   int64    `json:"nodes"`
	Links   int64    `json:"links"`
	Orders  int64    `json:"orders,omitempty"`
	Vectors int64    `json:"vectors,omitempty"`
	// Gone says of which offsets the topics hold no records any more, so that nothing can be said about them.
	Gone []string `json:"gone,omitempty"`
	// Compacted are the topics of which compaction removes records, so that little can be said about what they lack.
	Compacted []string `json:"compacted,omitempty"`
	// Open are records that no manifest covers yet. They are left out of the comparison.
	Open int64 `json:"open,omitempty"`
	// Total counts the nodes, orders and vectors that differ; List has the first of them.
	Total int      `json:"different"`
	List  []string `json:"differences,omitempty"`
}

// maxDifferences is how many differences are listed.
const maxDifferences = 20

// Topics are the input topics but the mirror, with a partition for each shard.
type Topics struct {
	Inputs []string
	mutation.Source
	// Undirected is that of the pipeline.
	Undirected bool
}

// Against reads the input topics up to the newest manifests' offsets, computes the graph that they state with
// package oracle, and compares every node and every link with the committed rows.
func Against(ctx context.Context, store sink.Store, shards int, in Topics, progress ambient.Progress) (
	*Differences, error) {
	progress = ambient.OrDiscard(progress)
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	d := &Differences{Topics: in.Inputs}
	graph := oracle.New(in.Undirected)
	if err := d.read(ctx, in, store, cut, graph, progress); err != nil {
		return nil, err
	}
	if err := d.compare(ctx, store, cut, graph.Rows(), progress); err != nil {
		return d, err
	}
	if err := d.compareOrders(ctx, store, cut, graph); err != nil {
		return d, err
	}
	err = d.compareVectors(ctx, store, cut, graph.Vectors())
	slices.Sort(d.List)
	return d, err
}

// read adds all committed records to the graph.
func (d *Differences) read(ctx context.Context, in Topics, store sink.Store, cut commitlog.Cut, graph *oracle.Graph,
	progress ambient.Progress) error {
	progress.Stage("read the topics", 0)
	first, err := in.FirstOffsets(ctx, d.Topics...)
	if err != nil {
		return err
	}
	ends, err := in.EndOffsets(ctx, d.Topics...)
	if err != nil {
		return err
	}
	for shard, seq := range cut {
		var next map[string]int64
		if seq > 0 {
			head, err := commitlog.ReadManifest(ctx, store, shard, seq)
			if err != nil {
				return err
			}
			next = head.Next
		}
		for _, topic := range d.Topics {
			if shard >= len(ends[topic]) {
				return fmt.Errorf("topic %s has %d partitions, shard %d needs one", topic, len(ends[topic]), shard)
			}
			from, to, end := first[topic][shard], next[topic], ends[topic][shard]
			if from > 0 {
				d.Gone = append(d.Gone, fmt.Sprintf("%s, partition %d, offsets 0 to %d", topic, shard, from-1))
			}
			if to > end {
				d.Gone = append(d.Gone, fmt.Sprintf("%s, partition %d, offsets %d to %d", topic, shard, end, to-1))
			}
			d.Open += max(0, end-to)
			records, refused, err := in.Range(ctx, topic, shard, from, min(to, end), func(m mutation.Mutation) {
				graph.Add(m)
				progress.Add(1)
			})
			d.Records, d.Refused = d.Records+records, d.Refused+refused
			if err != nil {
				return err
			}
		}
	}
	slices.Sort(d.Gone)
	return nil
}

// compare compares the newest row of every node with what it must be.
func (d *Differences) compare(ctx context.Context, store sink.Store, cut commitlog.Cut, want map[string]rows.Row,
	progress ambient.Progress) error {
	progress.Stage("compare the rows", int64(len(want)))
	for _, row := range want {
		if !row.Deleted {
			d.Nodes++
			d.Links += int64(len(row.Labels))
		}
	}
	for shard := range cut {
		for row, err := range cut.Facts(ctx, store, shard) {
			if err != nil {
				return err
			}
			progress.Add(1)
			expected, ok := want[row.NodeID]
			delete(want, row.NodeID)
			if what := difference(&row.Row, expected, ok); what != "" {
				d.add(row.NodeID, what)
			}
		}
	}
	for id, row := range want {
		if !row.Deleted {
			d.add(id, "the topics state it, and no row was committed")
		} else {
			d.add(id, "the topics state that it was deleted, and no row was committed")
		}
	}
	return nil
}

// compareOrders compares what counts of the newest row of every order with what it must be.
func (d *Differences) compareOrders(ctx context.Context, store sink.Store, cut commitlog.Cut,
	stated *oracle.Graph) error {
	horizon, err := cut.OrderHorizon(ctx, store)
	if err != nil {
		return err
	}
	want := map[string]string{}
	for _, o := range stated.OrdersAfter(horizon) {
		want[rows.Orders.Key(&o)] = fmt.Sprintf("%+v", o)
		if !o.Deleted {
			d.Orders++
		}
	}
	for shard := range cut {
		for o, err := range cut.Orders(ctx, store, shard, horizon) {
			if err != nil {
				return err
			}
			key, got := rows.Orders.Key(&o), fmt.Sprintf("%+v", o)
			switch expected, ok := want[key]; {
			case !ok:
				d.addOrder(key, "a row was committed, and the topics do not state it")
			case got != expected:
				d.addOrder(key, fmt.Sprintf("the row is %.300s, the topics state %.300s", got, expected))
			}
			delete(want, key)
		}
	}
	for key := range want {
		d.addOrder(key, "the topics state it, and no row was committed")
	}
	return nil
}

func (d *Differences) addOrder(key, what string) {
	d.add(key[1:], fmt.Sprintf("order of input %d: %s", key[0], what))
}

func (d *Differences) add(id, what string) {
	if d.Total++; len(d.List) < maxDifferences {
		d.List = append(d.List, fmt.Sprintf("%q: %s", id, what))
	}
}

// difference says how a row differs from what the topics state, "" if it does not.
func difference(got *rows.Row, want rows.Row, stated bool) string {
	var missing, extra int
	for _, l := range want.Labels {
		if _, ok := slices.BinarySearch(got.Labels, l); !ok {
			missing++
		}
	}
	for _, l := range got.Labels {
		if _, ok := slices.BinarySearch(want.Labels, l); !ok {
			extra++
		}
	}
	switch {
	case !stated:
		return "a row was committed, and the topics do not state it"
	case got.Deleted != want.Deleted:
		return fmt.Sprintf("the row says deleted %t, the topics %t", got.Deleted, want.Deleted)
	case missing+extra > 0:
		return fmt.Sprintf("the row lacks %d links that the topics state, and has %d that they do not", missing, extra)
	case !slices.Equal(got.LinkEnds, want.LinkEnds) || !slices.Equal(got.LinkKinds, want.LinkKinds) ||
		!slices.Equal(got.LinkWeights, want.LinkWeights):
		return "the row has other kinds or weights of links"
	case !slices.Equal(got.LinkTimes, want.LinkTimes):
		return "the row has other times of links"
	case got.Text != want.Text:
		return "the row has another text"
	case got.Class != want.Class:
		return fmt.Sprintf("the row has class %q, the topics state %q", got.Class, want.Class)
	case got.Attributes != want.Attributes:
		return fmt.Sprintf("the row has attributes %.200q, the topics state %.200q", got.Attributes, want.Attributes)
	case got.EventTime != want.EventTime:
		return fmt.Sprintf("the row has event time %s, the topics state %s", micros(got.EventTime),
			micros(want.EventTime))
	}
	return ""
}

func micros(t int64) string { return time.UnixMicro(t).UTC().Format(time.RFC3339Nano) }
