package generation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/relations"
)

// DocFormat is the version of generation.json that is written. Readers know every version from 1 to this one,
// and refuse others. Version 2 added the document's checksum and Files, version 3 names objects by their SHA-256.
const DocFormat = 3

// Status of a generation.
type Status string

// A generation is building until everything it consists of is in the store. It is then ready, or
// refused by the quality gate: never served.
const (
	Building Status = "building"
	Ready    Status = "ready"
	Refused  Status = "refused"
)

// Gate says what becomes of a generation whose encoder is worse than text alone on the generation's
// own held-out data.
type Gate string

// The quality gates.
const (
	GateWarn  Gate = "warn"  // it is served, with a warning
	GateBlock Gate = "block" // the generation before it keeps serving, where there is one
	GateOff   Gate = "off"   // it is served
)

// Gates returns the names of the quality gates.
func Gates() []string { return []string{string(GateWarn), string(GateBlock), string(GateOff)} }

// ErrNone: the store holds no generation that fits the question.
var ErrNone = errors.New("no generation yet")

// ErrTooFew: the texts tell no two nodes apart, so that there is nothing to fit.
var ErrTooFew = errors.New("too few nodes with different texts to fit a generation, which takes three")

// Doc is generations/<g>/generation.json.
type Doc struct {
	Format     int   `json:"format"`
	Generation int64 `json:"generation"`
	Parent     int64 `json:"parent,omitempty"` // the ready generation before it, 0 for none
	// KeepSpaceOf is the parent, if the build is to keep the space of its embeddings.
	KeepSpaceOf int64 `json:"keep_space_of,omitempty"`
	// AveragedWith is the parent, if what it has learned is averaged into what this build learns. LearnedSince is then
	// the generation from whose cut on something may have been learned, see LearnedFrom. WarmOf is the parent that a
	// build of an earlier release went on from.
	AveragedWith int64 `json:"averaged_with,omitempty"`
	LearnedSince int64 `json:"learned_since,omitempty"`
	WarmOf       int64 `json:"warm_of,omitempty"`
	// Space is the generation that began the space of the embeddings, see SpaceOf.
	Space  int64  `json:"space,omitempty"`
	Status Status `json:"status"`
	// Cut is, per shard, the sequence number of the newest manifest included.
	Cut map[int]int64 `json:"cut"`
	// GraphHash identifies the graph at the cut, whatever the number of
	// shards and windows it arrived in.
	GraphHash string       `json:"graph_hash,omitempty"`
	Settings  fit.Settings `json:"settings"`
	// QualityGate is the gate that the build began with, "" in documents of older builds.
	QualityGate Gate `json:"quality_gate,omitempty"`
	// Canary: only the canary topic gets the generation, until people promote it.
	Canary bool `json:"canary_topic,omitempty"`
	// GPUMath are the modes other than float32 in which GPUs multiplied for this build, each once: several if
	// it was resumed in another. A part may have been in float32, too.
	GPUMath []compute.Math `json:"gpu_math,omitempty"`
	// Because is why the build began, "" where nobody has said.
	Because  string    `json:"because,omitempty"`
	Created  time.Time `json:"created"`
	Finished time.Time `json:"finished,omitzero"`

	Graph      GraphStats      `json:"graph,omitzero"`
	Vectorizer VectorizerStats `json:"vectorizer,omitzero"`
	Tree       TreeStats       `json:"tree,omitzero"`
	// Mapping compares the tree with the parent generation's, nil without parent.
	Mapping *MappingStats `json:"mapping,omitempty"`
	Encoder EncoderStats  `json:"encoder,omitzero"`
	// Overlap compares the embeddings with the parent's, nil without parent.
	Overlap *OverlapStats `json:"overlap,omitempty"`
	// TextOnly is why the encoder knows the texts alone, "" where it was trained on the graph.
	TextOnly string `json:"text_only,omitempty"`
	// Evaluation holds one report per encoder, text-only baseline first.
	Evaluation []fit.Evaluation `json:"evaluation,omitempty"`
	// Shortfalls are the figures in which the encoder is worse than text alone.
	Shortfalls []fit.Shortfall `json:"shortfalls,omitempty"`
	// Declines are the figures that have fallen over the last generations.
	Declines []Decline `json:"declines,omitempty"`
	// Stages are the seconds that each stage took in the process that
	// finished the build (near 0 for stages that it found done).
	Stages []StageTime `json:"stages,omitempty"`
	// Embeddings are the Parquet parts, one per shard that has nodes.
	Embeddings []sink.Part `json:"embeddings,omitempty"`
	// Dataset are the Parquet parts of the training set.
	Dataset []sink.Part `json:"dataset,omitempty"`
	// History are the ready generations before, oldest first, at most historyKept of them.
	History []Summary `json:"history,omitempty"`
	// GoesWith describes what goes with what, nil without orders.
	GoesWith *ComplementStats `json:"goes_with,omitempty"`
	// Files are the generation's other objects, by their names below Prefix, once it is complete.
	Files map[string]File `json:"files,omitempty"`
}

// GraphStats describes the graph at the cut.
type GraphStats struct {
	Nodes    int `json:"nodes"`
	Deleted  int `json:"deleted"`
	Links    int `json:"links"`    // stored adjacencies (an undirected edge counts twice)
	Dangling int `json:"dangling"` // labels left out because their node does not exist
	Hidden   int `json:"hidden"`   // edges held out for the evaluation
	Isolated int `json:"isolated"` // nodes without a neighbour
	Hubs     int `json:"hubs"`     // nodes over max_degree: labels, but no instances
	Classes  int `json:"classes"`
	// NoText counts the nodes whose texts mean nothing to the encoder, FromNeighbours those of
	// them that have their neighbours' mean for an embedding.
	NoText         int `json:"no_text,omitempty"`
	FromNeighbours int `json:"from_neighbours,omitempty"`
	// MaxDegree is the largest degree found.
	MaxDegree int `json:"max_degree"`
	// Kinds counts the links that have a kind, by kind, as rows state them: those to unknown nodes, too, and an
	// undirected one twice.
	Kinds map[string]int `json:"kinds,omitempty"`
	// Relations are what the kinds of links weigh, nil where all links weigh the same. Weightless are links that weigh
	// nothing: training and evaluation are without them.
	Relations  []relations.Relation `json:"relations,omitempty"`
	Weightless int                  `json:"weightless,omitempty"`
	// Orders is what orders gave, nil where there were none.
	Orders *OrderStats `json:"orders,omitempty"`
	// Vectors are what the items' own vectors weigh, by name.
	Vectors []fit.VectorStats `json:"vectors,omitempty"`
}

// OrderStats describes what is linked because it is ordered together.
type OrderStats struct {
	// Orders that have an item, Lines their items. Unknown of these are no nodes; Large orders have too many items for
	// their pairs to count.
	Orders  int `json:"orders"`
	Lines   int `json:"lines"`
	Unknown int `json:"unknown"`
	Large   int `json:"large"`
	// Items are nodes with an order.
	Items int `json:"items"`
	// Pairs are those of nodes that an order has both of, Kept those that are linked, hidden ones included.
	Pairs int `json:"pairs"`
	Kept  int `json:"kept"`
	// MinSupport is how many orders have both of a pair that is linked; 0 if the build is older than this figure.
	MinSupport int `json:"min_support,omitempty"`
	// Partners says, for some numbers of partners, how many items have at least that many.
	Partners []AtLeast `json:"partners"`
	// Behaviour is the view of items that encoders place beside the text, nil for encoders that have none.
	Behaviour *BehaviourStats `json:"behaviour,omitempty"`
}

// BehaviourStats says what orders add to the embeddings as a view of their own.
type BehaviourStats struct {
	// Items that have a view, none if the weight is 0. Weight is its length beside that of the text, for an item of
	// many orders.
	Items  int     `json:"items"`
	Weight float32 `json:"weight"`
	// TooLarge: the orders took too much memory for a view.
	TooLarge bool `json:"too_large,omitempty"`
	// Asked is how many pairs that only a part of the orders links decided the weight; Drawn: of all that orders link.
	// Text is how well the projected text alone predicts them, With the same beside a view that knows nothing of them.
	Asked int              `json:"asked"`
	Drawn bool             `json:"drawn,omitempty"`
	Text  eval.LinkMetrics `json:"text,omitzero"`
	With  eval.LinkMetrics `json:"with,omitzero"`
}

// AtLeast is how many items have at least that many partners.
type AtLeast struct {
	Partners int `json:"partners"`
	Items    int `json:"items"`
}

// VectorizerStats describes Ψ on the texts it was fitted to.
type VectorizerStats struct {
	Features int `json:"features"`
	// UnknownShare of the texts' n-grams are no features: too rare, or in nearly every
	// text. It rises in texts that come later.
	UnknownShare float64 `json:"unknown_share"`
}

// TreeStats describes the label tree.
type TreeStats struct {
	Labels     int     `json:"labels"`
	Levels     []int   `json:"levels"` // clusters per level, coarse to fine
	MeanCosine float64 `json:"mean_cosine"`
}

// EncoderStats describes the trained encoder.
type EncoderStats struct {
	Kind    string          `json:"kind"`
	Dim     int             `json:"dim"`
	Bytes   int64           `json:"bytes"`
	Metrics json.RawMessage `json:"metrics,omitempty"` // the trainer's own report
}

// StageTime is how long a stage took.
type StageTime struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// root is the key prefix of all generations.
const root = "generations/"

// Prefix returns the key prefix of generation g, ending in a slash.
func Prefix(g int64) string { return fmt.Sprintf(root+"%06d/", g) }

func docKey(g int64) string { return Prefix(g) + "generation.json" }

// Load reads generation g's document, ErrNone if there is none, ErrDamaged if it is not what was stored.
func Load(ctx context.Context, store sink.Store, g int64) (*Doc, error) {
	data, err := sink.ReadAll(ctx, store, docKey(g))
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("generation %d: %w", g, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	body, sealed, err := seal.Open(data, sink.PlaceOf(store, docKey(g)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", docKey(g), ErrDamaged, err)
	}
	var d struct {
		Doc
		// CanaryShare is of earlier releases, which gave a canary to a share of the nodes.
		CanaryShare float64 `json:"canary"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", docKey(g), ErrDamaged, err)
	}
	d.Canary = d.Canary || d.CanaryShare > 0
	switch {
	case d.Format < 1 || d.Format > DocFormat:
		return nil, fmt.Errorf("%s has format %d, this build reads 1 to %d: upgrade giantstream", docKey(g),
			d.Format, DocFormat)
	case d.Format > 1 && !sealed:
		return nil, fmt.Errorf("%s: %w: it has no checksum", docKey(g), ErrDamaged)
	case d.Generation != g:
		return nil, fmt.Errorf("%s: %w: it describes generation %d", docKey(g), ErrDamaged, d.Generation)
	}
	return &d.Doc, nil
}

// StoredDim is the dimension of the generation's stored embeddings, which may be lower than the
// encoder's.
func (d *Doc) StoredDim() int {
	if n := d.Settings.Stored.Dim; n > 0 {
		return min(n, d.Encoder.Dim)
	}
	return d.Encoder.Dim
}

// Create writes the document of a build that begins. If several processes begin the same
// generation, one of them continues, with its cut and settings.
func (d *Doc) Create(ctx context.Context, store sink.Store) error {
	data, err := d.encode(store)
	if err != nil {
		return err
	}
	err = store.Create(ctx, docKey(d.Generation), data)
	if errors.Is(err, sink.ErrExists) {
		return fmt.Errorf("generation %d was begun by another process in the meantime: %w", d.Generation, err)
	}
	return err
}

// Save replaces the document.
func (d *Doc) Save(ctx context.Context, store sink.Store) error {
	data, err := d.encode(store)
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, store, docKey(d.Generation), data)
}

func (d *Doc) encode(store sink.Store) ([]byte, error) {
	return seal.JSON(d, sink.PlaceOf(store, docKey(d.Generation)))
}

// Numbers lists the generations in the store, ascending, ready or not.
// It skips from one generation's folder to the next, so its cost does not
// grow with the objects inside them.
func Numbers(ctx context.Context, store sink.Store) ([]int64, error) {
	gens, _, err := list(ctx, store)
	return gens, err
}

// list also says whether anybody has chosen a generation, which saves a request for the choice.
func list(ctx context.Context, store sink.Store) (gens []int64, chosen bool, err error) {
	for after := ""; ; {
		var key string
		for info, err := range store.List(ctx, root, after) {
			if err != nil {
				return nil, false, err
			}
			key = info.Key
			break
		}
		if key == "" {
			return gens, chosen, nil
		}
		chosen = chosen || key == choiceKey
		folder, _, _ := strings.Cut(strings.TrimPrefix(key, root), "/")
		if g, err := strconv.ParseInt(folder, 10, 64); err == nil && g > 0 {
			gens = append(gens, g)
		}
		after = root + folder + "/~" // '~' sorts after every key byte
	}
}

// Finish gives a document whose objects are all in the store its final status, and removes what tasks have left. Which
// status depends on what the build began with and on what it measured, so a resumed build comes to the same end.
func (d *Doc) Finish(ctx context.Context, store sink.Store, stages []StageTime, now time.Time) error {
	if err := d.noteFiles(ctx, store); err != nil {
		return err
	}
	d.Format = DocFormat // a build that an older release has begun, too
	d.Stages, d.Finished, d.Status = stages, now.UTC(), Ready
	if d.QualityGate == GateBlock && len(d.Shortfalls) > 0 && d.Parent > 0 {
		d.Status = Refused
	}
	if err := d.Save(ctx, store); err != nil {
		return err
	}
	return RemoveTasks(ctx, store, d.Generation)
}

// LearnedFrom returns the first of the generations of whose graphs this one has learned: itself, or one of those before
// that it is averaged with.
func (d *Doc) LearnedFrom() int64 { return cmp.Or(d.LearnedSince, d.WarmOf, d.Generation) }

// Complete reports whether the build is over: the generation is ready or refused.
func (d *Doc) Complete() bool { return d.Status == Ready || d.Status == Refused }

// Warning says in which figures the encoder is worse than text alone, and which have fallen over the last generations;
// "" for none, and where the quality gate is off. It names the figures in which the encoder is better, too.
func (d *Doc) Warning() string {
	if d.QualityGate == GateOff {
		return ""
	}
	var warnings []string
	if len(d.Shortfalls) > 0 {
		worse := fmt.Sprintf("the encoder %s is worse than text alone in %s", d.Encoder.Kind,
			fit.ListShortfalls(d.Shortfalls))
		if gains := fit.Gains(d.Evaluation); len(gains) > 0 {
			worse += ", and better in " + fit.ListShortfalls(gains)
			onLinks := slices.ContainsFunc(gains, func(s fit.Shortfall) bool { return !s.OfClasses() })
			if onLinks && !slices.ContainsFunc(d.Shortfalls, func(s fit.Shortfall) bool { return !s.OfClasses() }) {
				worse += ": a class whose words stand in the texts is told best by the texts"
			}
		}
		warnings = append(warnings, worse)
	}
	if len(d.Declines) > 0 {
		warnings = append(warnings, fmt.Sprintf("the encoder %s has become worse in %s", d.Encoder.Kind,
			listDeclines(d.Declines)))
	}
	return strings.Join(warnings, "; ")
}

// Current returns the generation that is to be served: the newest that is ready and not damaged, unless people have
// chosen otherwise (Choice). ErrNone if there is none.
func Current(ctx context.Context, store sink.Store) (*Doc, error) {
	latest, err := Newest(ctx, store)
	if err == nil && latest.Current == nil {
		err = ErrNone
	}
	return latest.Current, err
}

// Latest is what a service looks for among the generations; nil for none.
type Latest struct {
	// Current is the generation that is to be served.
	Current *Doc
	// Canary is the generation that the canary topic has in place of Current, until people promote it.
	Canary *Doc
	// Refused is the newest refused generation, Held the newest ready one that people have withdrawn or that waits
	// behind a pin, and Damaged the newest damaged one, if they are newer than Current and not served.
	Refused *Doc
	Held    *Doc
	Damaged *Damage
}

// Last returns the newest complete generation, served or not, nil for none. Whether another is due is counted from it.
func (l *Latest) Last() (last *Doc) {
	for _, d := range []*Doc{l.Current, l.Canary, l.Held, l.Refused} {
		if d != nil && (last == nil || d.Generation > last.Generation) {
			last = d
		}
	}
	return last
}

// PassedOver returns the newest complete generation that is newer than the current one and not to be served, 0 for
// none.
func (l *Latest) PassedOver() (newest int64) {
	for _, d := range []*Doc{l.Refused, l.Held} {
		if d != nil {
			newest = max(newest, d.Generation)
		}
	}
	if l.Damaged != nil {
		newest = max(newest, l.Damaged.Generation)
	}
	return newest
}

// Newest looks through the generations, from the newest to the current one.
func Newest(ctx context.Context, store sink.Store) (latest Latest, err error) {
	gens, chosen, err := list(ctx, store)
	if err != nil {
		return Latest{}, err
	}
	choice := &Choice{}
	if chosen {
		if choice, err = LoadChoice(ctx, store); err != nil {
			return Latest{}, err
		}
	}
	for _, g := range slices.Backward(gens) {
		d, damage, err := loadMarked(ctx, store, g)
		switch {
		case errors.Is(err, ErrNone): // a folder without its document yet
		case err != nil:
			return Latest{}, err
		case damage != nil:
			latest.Damaged = cmp.Or(latest.Damaged, damage)
		case choice.allows(d):
			latest.Current = d
			return latest, nil
		case choice.isCanary(d):
			if latest.Held == nil && latest.Canary == nil { // a later one takes the place of one that nobody has judged
				latest.Canary = d
			}
		case d.Status == Ready:
			latest.Held = cmp.Or(latest.Held, d)
		case d.Status == Refused:
			latest.Refused = cmp.Or(latest.Refused, d)
		}
	}
	// Nothing is left that it could be compared with.
	latest.Current, latest.Canary = latest.Canary, nil
	return latest, nil
}

// Next returns the document to build now: the unfinished generation if there
// is one (the resume of a build that died), else nil and the next free number.
func Next(ctx context.Context, store sink.Store) (*Doc, int64, error) {
	gens, err := Numbers(ctx, store)
	if err != nil {
		return nil, 0, err
	}
	if len(gens) == 0 {
		first, err := loadFirst(ctx, store)
		return nil, first, err
	}
	last := gens[len(gens)-1]
	d, damage, err := loadMarked(ctx, store, last)
	if errors.Is(err, ErrNone) {
		return nil, last, nil
	}
	if err != nil {
		return nil, 0, err
	}
	// Of a damaged document it is not known any more what it was, and on which cut.
	if damage == nil && d.Status == Building {
		return d, last, nil
	}
	return nil, last + 1, nil
}
