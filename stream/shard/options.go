package shard

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// Mirror carries assertions of an undirected graph to the shards of the far ends.
type Mirror interface {
	// Publish sends mirror mutations (MirrorPut, MirrorDelete) to the shards of their IDs. It may
	// buffer, and keeps the slice.
	Publish(ctx context.Context, assertions []mutation.Mutation) error
	// Flush returns when everything published is durable.
	Flush(ctx context.Context) error
}

// Featurizer fills in the FeatureIndices, FeatureValues, Targets, TargetCounts and Generation of a
// row by the current generation, from Text and Labels. Before the first generation it leaves the
// row alone. It does not see rows of deleted nodes.
type Featurizer interface {
	Featurize(row *rows.Row) error
}

// Topics names the inputs as in mutation.Batch.Next.
type Topics struct {
	Nodes, Edges string
	// Further are the topics of the inputs from mutation.Further on; "" for one that is not read any more.
	Further []string
	Mirror  string // "" for directed graphs
}

// Names returns the names of those that there are.
func (t Topics) Names() (names []string) {
	for _, name := range append([]string{t.Nodes, t.Edges, t.Mirror}, t.Further...) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// nameOf returns the topic of an input, "" if there is none.
func (t Topics) nameOf(in mutation.Input) string {
	switch in {
	case mutation.Nodes:
		return t.Nodes
	case mutation.Edges:
		return t.Edges
	case mutation.Mirror:
		return t.Mirror
	}
	if i := int(in - mutation.Further); i < len(t.Further) {
		return t.Further[i]
	}
	return ""
}

// Window bounds what is committed at once. The bound that is reached first closes the window.
type Window struct {
	// Changes is the number of nodes with a changed row.
	Changes int
	// Bytes is the size of the records consumed.
	Bytes int64
	// Time is how far commits are apart at least, unless another bound is reached. A record that comes after a longer
	// pause waits a tenth of it for more, and no longer than 100 ms.
	Time time.Duration
}

// Inputs tells what the input topics are at present.
type Inputs interface {
	// Identify says which topics have the names of the inputs. The answer is at least as new as the
	// call.
	Identify(ctx context.Context) (map[string]Identity, error)
	// Bounds says which offsets the shard's partition of each input has.
	Bounds(ctx context.Context) (map[string]Bounds, error)
	// Fingerprint returns that of the record at an offset of the brokers in the shard's partition, ""
	// if there is none.
	Fingerprint(ctx context.Context, topic string, offset int64) (string, error)
}

// Identity is what tells a topic from another one of the same name.
type Identity struct {
	ID         string // "" if brokers give none
	Partitions int
}

// Bounds are offsets of the brokers.
type Bounds struct {
	Oldest int64 // of the oldest record that is kept
	End    int64 // that the next record will get
}

// Accept says which losses of which topics a person has accepted.
type Accept struct {
	// Replaced topics are read from their start, although the commit log was read from another one.
	Replaced map[string]bool
	// Lost records of these topics are named in the log, but by no manifest.
	Lost map[string]bool
}

// Options of a Shard.
type Options struct {
	Pipeline      string // Identity.Name
	Shard, Shards int
	// Dir holds the graph state of this shard and nothing else. If it is lost, the input is read
	// again from the newest checkpoint on. Directories beside it, of its name with a suffix, hold
	// copies on their way from and to the store.
	Dir string
	// Standby, unless "", is where FetchStandby may have left files of the newest checkpoint. A restore takes them
	// from there if they are what the checkpoint says.
	Standby string
	Store   sink.Store
	// Cache is shared with other shards of the process, and must outlive them. With nil the shard
	// has its own.
	Cache  *Cache
	Topics Topics
	Window Window
	// Bounds, if set, returns the bounds of windows from now on, in place of Window. Run calls it before each batch.
	Bounds func() Window
	// Compression of the rows of a window; "" is Zstandard.
	Compression parquetio.Compression
	// Inputs tells what the input topics are. With nil they are taken for what they were.
	Inputs Inputs
	// Accept says which losses are accepted on purpose, until the first manifest of this Shard.
	Accept Accept
	// KeepOrders is how long orders count, by the newest time of an order; 0 is for ever. It is a day at least.
	KeepOrders time.Duration
	// Mirror is nil for directed graphs.
	Mirror Mirror
	// Featurizer may be nil.
	Featurizer Featurizer
	// Writer names the process, for people who read manifests. The shard appends its session id, so
	// no two openings share a name.
	Writer string
	// CheckpointEvery is how often Run copies the state to the store; 0 means never.
	CheckpointEvery time.Duration
	// Drain, if set, is called after every batch. If it returns true, a window is committed as soon
	// as the feed has caught up, without waiting for more.
	Drain func() bool
	// Load: this is the first load of a graph, for which nobody waits. The first window of a shard
	// without a manifest ends when Drain says so and the feed is idle, or has caught up Window.Time
	// ago. Meanwhile it is written to the local state as memory runs short. Needs Drain.
	Load bool
	// Listener hears what happens in the shard; NopListener if nil.
	Listener Listener
	Clock    func() time.Time // time.Now if nil
	Log      *slog.Logger     // discarded if nil
	Rand     io.Reader        // crypto/rand if nil

	fs        vfs.FS        // tests: a file system that loses unsynced writes
	backoff   time.Duration // tests: first pause between attempts to commit
	transfers int           // tests: files at once; 1 puts calls in an order
	maxRows   int64         // tests: of a row object; 0 means WriteObjects' bound
	grace     time.Duration // tests: for calls into an engine that has failed; 0 means engine.Grace
}

// defaultTransfers is how many files of a state are transferred at once.
const defaultTransfers = 4

// Simulated returns the options for the simulation: the state lies on a file system in memory, so that a machine can
// lose its power, and files are transferred one after another, so that chance alone decides the order of calls.
func (o Options) Simulated(fs vfs.FS) Options {
	o.fs, o.transfers = fs, 1
	return o
}

const (
	commitBackoff = 100 * time.Millisecond
	leastKeep     = 24 * time.Hour // of orders
)

func (o Options) withDefaults() (Options, error) {
	if o.Shards < 1 || o.Shard < 0 || o.Shard >= o.Shards {
		return o, fmt.Errorf("shard %d of %d does not exist", o.Shard, o.Shards)
	}
	if o.Store == nil || o.Dir == "" {
		return o, fmt.Errorf("shard %d needs a store and a state directory", o.Shard)
	}
	if o.Topics.Nodes == "" || (o.Mirror != nil) != (o.Topics.Mirror != "") {
		return o, fmt.Errorf("shard %d needs the name of the nodes topic, "+
			"and a mirror with its topic's name or neither", o.Shard)
	}
	if o.Load && o.Drain == nil {
		return o, fmt.Errorf("shard %d is to load a graph, and nothing says when the load ends", o.Shard)
	}
	if o.Window.Changes < 1 || o.Window.Bytes < 1 || o.Window.Time <= 0 {
		return o, fmt.Errorf("shard %d needs bounds for its windows, has %+v", o.Shard, o.Window)
	}
	if o.KeepOrders != 0 && o.KeepOrders < leastKeep {
		return o, fmt.Errorf("shard %d is to keep orders for %v; the least is %v", o.Shard, o.KeepOrders, leastKeep)
	}
	if o.fs == nil {
		o.fs = vfs.Default
	}
	o.Clock, o.Log, o.Rand = ambient.Clock(o.Clock), ambient.Log(o.Log), ambient.Rand(o.Rand)
	if o.Listener == nil {
		o.Listener = NopListener{}
	}
	if o.backoff <= 0 {
		o.backoff = commitBackoff
	}
	if o.transfers <= 0 {
		o.transfers = defaultTransfers
	}
	if o.grace <= 0 {
		o.grace = engine.Grace
	}
	o.Log = o.Log.With("shard", o.Shard)
	return o, nil
}

// Listener hears what happens in a shard: metrics, traces and pages hang on it. No method may call
// the shard, and the shard waits for each one. All but Checkpointed are called on the goroutine
// that opens and runs the shard.
type Listener interface {
	// Step begins a step of a batch ("apply") or of a window ("commit", and in it "rows" and
	// "manifest"). The step works with the context returned, and calls ended with its error when it
	// is over.
	Step(ctx context.Context, name string) (stepCtx context.Context, ended func(error))
	// Committed hears every manifest that this Shard has created, in order.
	Committed(m *commitlog.Manifest)
	// Lost hears how many records of a topic were gone when the shard was opened.
	Lost(offsets int64)
	// Checkpointed hears of every attempt to copy the state to the store: the bytes uploaded, and
	// the error. Attempts that the shard's own end cuts off are left out. Calls come one at a time,
	// on any goroutine.
	Checkpointed(uploaded int64, err error)
	// SetAside hears that a damaged state was renamed to dir. The shard builds a new one from a
	// checkpoint or from the topics.
	SetAside(dir string, reason error)
}

// NopListener hears nothing. A listener that wants some of the events embeds it.
type NopListener struct{}

var _ Listener = NopListener{}

// Step implements Listener.
func (NopListener) Step(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// Committed implements Listener.
func (NopListener) Committed(*commitlog.Manifest) {}

// Lost implements Listener.
func (NopListener) Lost(int64) {}

// Checkpointed implements Listener.
func (NopListener) Checkpointed(int64, error) {}

// SetAside implements Listener.
func (NopListener) SetAside(string, error) {}
