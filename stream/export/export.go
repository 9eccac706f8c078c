package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"giantstream/internal/ambient"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// From says what an export by event time is made from.
type From string

const (
	// FromTopics reads the topics from their first records: every statement up to the event time counts, and
	// nothing else.
	FromTopics From = "topics"
	// FromLog takes of each node the newest committed row that says nothing later than the event time.
	FromLog From = "log"
)

// The generations that Options.Generation may name besides numbers.
const (
	// Fitting is the newest generation that knows nothing beyond the point.
	Fitting int64 = -1
	// NoGeneration leaves embeddings, features and targets out.
	NoGeneration int64 = 0
)

// Options of an export.
type Options struct {
	Store sink.Store
	// Into is where the export goes: an empty folder or an unused prefix.
	Into sink.Store
	// Cut is what had been committed; nil is everything.
	Cut commitlog.Cut
	// AsOf is the event time; the zero time is none.
	AsOf time.Time
	From From
	// Topics are those that an event time is read from with FromTopics.
	Topics Topics
	// Generation makes embeddings, features and targets. It is one of Generations.
	Generation  int64
	Generations Generations
	// Dir is a folder for temporary files; "" is the system's.
	Dir      string
	Progress ambient.Progress
	Log      *slog.Logger
	Clock    func() time.Time
}

// Topics are the inputs but the mirror, which have a partition for each shard.
type Topics struct {
	Inputs []string
	mutation.Source
	// Undirected is that of the pipeline.
	Undirected bool
	// Partition returns the partition of a node's id.
	Partition func(id []byte, partitions int) int
}

// Generations are those of the store.
type Generations interface {
	// Ready yields the ones that may be served, newest first.
	Ready(ctx context.Context) iter.Seq2[Generation, error]
	// Load returns the one of a number.
	Load(ctx context.Context, number int64) (Generation, error)
	// Open opens what makes embeddings, features and targets of one.
	Open(ctx context.Context, number int64) (Model, error)
}

// Generation says what an export needs to know of a generation before it is opened.
type Generation struct {
	Number int64
	// Space is the generation that began the space of its embeddings.
	Space int64
	// Cut is what it was made from.
	Cut  commitlog.Cut
	Type embedding.Type
	// FromNeighbours counts the nodes without text that have an embedding. Parts are the embeddings at the cut.
	FromNeighbours int
	Parts          []sink.Part
}

// Model makes embeddings, features and targets.
type Model interface {
	// Featurize fills in the features and targets of a row.
	Featurize(row *rows.Row) error
	// EmbedNodes makes embeddings of nodes, in the form that is stored: vector and status alone.
	EmbedNodes(ids, texts []string) ([]embedding.Record, error)
	// Follow lets a node have the vectors that an input states.
	Follow(*rows.Vectors)
}

const (
	docKey     = "export.json"
	attemptKey = "incomplete.json"
	// Format is the version of export.json. Version 2 names objects by their SHA-256. Format page:
	// docs/format/export.md.
	Format = 2
)

// Doc is export.json.
type Doc struct {
	Format   int    `json:"format"`
	Pipeline string `json:"pipeline"`
	ID       string `json:"id"`
	// Cut is the newest manifest of each shard that counts.
	Cut map[int]int64 `json:"cut"`
	// AsOf is the event time, nil for an export of a cut.
	AsOf *time.Time `json:"as_of,omitempty"`
	From From       `json:"from,omitempty"`
	// Uncertain counts the nodes that changed after AsOf and may therefore be older than they should, in an export from
	// the log. Without any, the export is exact.
	Uncertain int64 `json:"uncertain,omitempty"`
	// Refused counts records of the topics that are dead letters.
	Refused int64  `json:"dead_letters,omitempty"`
	Nodes   int64  `json:"nodes"`
	Deleted int64  `json:"deleted"`
	Links   int64  `json:"links"`
	Hash    string `json:"graph_hash"`
	// Generation made embeddings, features and targets, 0 for none, and Space is the one that began their space.
	Generation int64       `json:"generation,omitempty"`
	Space      int64       `json:"space,omitempty"`
	Rows       []sink.Part `json:"rows"`
	Vectors    []sink.Part `json:"vectors,omitempty"`
	Orders     []sink.Part `json:"orders,omitempty"`
	Embeddings []sink.Part `json:"embeddings,omitempty"`
	Created    time.Time   `json:"created"`
}

// ErrComplete: the folder has an export already.
var ErrComplete = errors.New("an export is there already")

// Run writes an export.
func Run(ctx context.Context, o Options) (*Doc, error) {
	id, err := commitlog.LoadIdentity(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	o.Progress = ambient.OrDiscard(o.Progress)
	o.Clock = ambient.Clock(o.Clock)
	e := &run{Options: o, shards: id.Shards, doc: &Doc{Format: Format, Pipeline: id.Name, ID: id.ID}}
	if err := e.locate(ctx); err != nil {
		return nil, err
	}
	model, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	src, err := e.source(ctx)
	if err != nil {
		return nil, err
	}
	err = e.write(ctx, src, model)
	if err = errors.Join(err, src.close()); err != nil {
		return nil, err
	}
	return e.doc, e.complete(ctx)
}

type run struct {
	Options
	shards int
	doc    *Doc
	cut    commitlog.Cut
	made   Generation // what makes the embeddings
	// horizon is that of orders at the cut.
	horizon rows.Horizon
}

// locate finds the cut, and whether the store still has what is read of it.
func (e *run) locate(ctx context.Context) (err error) {
	e.cut = e.Cut
	if e.cut == nil {
		if e.cut, err = commitlog.CurrentCut(ctx, e.Store, e.shards); err != nil {
			return err
		}
	}
	e.doc.Cut = e.cut
	if !e.AsOf.IsZero() {
		at := e.AsOf.UTC()
		e.doc.AsOf, e.doc.From = &at, cmp.Or(e.From, FromTopics)
	}
	if e.doc.From == FromTopics {
		return nil // no row of the log is read
	}
	return e.kept(ctx)
}

// kept returns commitlog.ErrNotKept if rows of the cut were removed.
func (e *run) kept(ctx context.Context) error {
	e.Progress.Stage("look for the rows", int64(e.shards))
	next := commitlog.Cut{}
	var gone error
	for p := range e.shards {
		at, err := e.cut.Kept(ctx, e.Store, p)
		if errors.Is(err, commitlog.ErrNotKept) {
			gone = cmp.Or(gone, err)
		} else if err != nil {
			return err
		}
		next[p] = at
		e.Progress.Add(1)
	}
	if gone != nil {
		return fmt.Errorf("%w, whose rows were merged with later ones (compaction.history, compaction.grace). Export "+
			"--manifest %s, the oldest point from there on, or with --as-of from the topics", gone, List(next))
	}
	return nil
}

// List names the manifests of a cut as --manifest takes them.
func List(cut commitlog.Cut) string {
	var names []string
	for p := range len(cut) {
		names = append(names, fmt.Sprintf("%d=%d", p, cut[p]))
	}
	return strings.Join(names, ",")
}

// begin takes the folder.
func (e *run) begin(ctx context.Context) error {
	found := false
	for info, err := range e.Into.List(ctx, "", "") {
		if err != nil {
			return err
		}
		found = true
		switch info.Key {
		case docKey:
			return fmt.Errorf("%w: %s; choose another place, or remove that one", ErrComplete, e.Into.URL())
		case attemptKey:
			return e.empty(ctx)
		}
	}
	if found {
		return fmt.Errorf("%s is not empty: an export goes to an empty folder or an unused prefix", e.Into.URL())
	}
	data, err := seal.JSON(map[string]string{"pipeline": e.doc.Pipeline, "id": e.doc.ID},
		sink.PlaceOf(e.Into, attemptKey))
	if err != nil {
		return err
	}
	return e.Into.Create(ctx, attemptKey, data)
}

// empty removes what an unfinished attempt has left.
func (e *run) empty(ctx context.Context) error {
	var keys []string
	for info, err := range e.Into.List(ctx, "", "") {
		if err != nil {
			return err
		}
		if slices.ContainsFunc([]string{rowsPrefix, vectorsPrefix, ordersPrefix, embeddingsPrefix},
			func(prefix string) bool { return strings.HasPrefix(info.Key, prefix) }) {
			keys = append(keys, info.Key)
		}
	}
	for _, key := range keys {
		if err := e.Into.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (e *run) complete(ctx context.Context) error {
	e.doc.Created = e.Clock().UTC()
	data, err := seal.JSON(e.doc, sink.PlaceOf(e.Into, docKey))
	if err != nil {
		return err
	}
	if err := e.Into.Create(ctx, docKey, data); err != nil {
		return err
	}
	return e.Into.Delete(ctx, attemptKey)
}

// Load reads the document of a complete export.
func Load(ctx context.Context, store sink.Store) (*Doc, error) {
	data, err := sink.ReadAll(ctx, store, docKey)
	if err != nil {
		return nil, err
	}
	body, _, err := seal.Open(data, sink.PlaceOf(store, docKey))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", docKey, err)
	}
	d := &Doc{}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("%s: %w", docKey, err)
	}
	return d, nil
}
