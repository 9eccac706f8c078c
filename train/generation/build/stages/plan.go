package stages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/featurize/pifa"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/train/generation"
)

// ErrNoPlan: the generation was not begun, or is gone.
var ErrNoPlan = errors.New("no build of this generation has begun; 'giantstream build plan' begins one")

// ErrNoTask: the plan has no such stage, or the stage no such partition.
var ErrNoTask = errors.New("there is no such task; 'giantstream build plan' lists those there are")

// planFormat is what plans have, weightedFormat those with weights, and vectorsFormat those with vectors: earlier
// releases would build them without.
const (
	planFormat     = 4
	weightedFormat = 5
	vectorsFormat  = 6
)

// Plan is generations/<g>/tasks/plan.json: how a generation is divided. It is written once, when the build begins,
// and no task changes it. Partitions and Ranges are powers of two.
type Plan struct {
	Format     int   `json:"format"`
	Generation int64 `json:"generation"`
	// Token is the build's own: one that is begun again under the same number has another.
	Token  string `json:"token"`
	Shards int    `json:"shards"`
	// Splits are the parts of the commit log that scatter reads, those of a shard after each other.
	Splits []Split `json:"splits"`
	// Partitions of the nodes, by the upper bits of the hash of their ids.
	Partitions int `json:"partitions"`
	// Ranges of labels that PIFA is computed for at a time.
	Ranges int `json:"ranges"`
	// Spread: projected texts are written to the ranges that need them, instead of read by all.
	Spread bool `json:"spread,omitempty"`
	// Sample is how many nodes the encoder is trained and evaluated on at most.
	Sample int `json:"sample"`
	// AtATime is how many tasks a process may do at a time within its memory, 0 for any number.
	AtATime int `json:"at_a_time,omitempty"`
	// Trainers is how many processes train the encoder together, 0 for one.
	Trainers int `json:"trainers,omitempty"`
	// Orders: what is ordered together is linked. Behaviour: it is a view of the items, too. Features are what the tree
	// is built of where that is not PIFA.
	// Fill: nodes without text have the embeddings of their neighbours. Parent: there is a generation to compare with.
	// Averaged: what it has learned is averaged into what is learned. GoesWith: orders say what goes with what; a plan
	// of an earlier release has Orders alone.
	Orders    bool      `json:"orders,omitempty"`
	Behaviour bool      `json:"behaviour,omitempty"`
	GoesWith  bool      `json:"goes_with,omitempty"`
	Features  pifa.Kind `json:"features,omitempty"`
	Fill      bool      `json:"fill,omitempty"`
	Parent    bool      `json:"parent,omitempty"`
	Averaged  bool      `json:"averaged,omitempty"`
	// Weighted: links have weights, by their kinds and by what they state.
	Weighted bool `json:"weighted,omitempty"`
	// Vectors: the items' own vectors are views of them.
	Vectors bool `json:"vectors,omitempty"`
}

// Weigh makes it a plan with weights. PIFA then takes them of what is spread: the links that others read have none.
func (p *Plan) Weigh() { p.Weighted, p.Spread, p.Format = true, true, max(p.Format, weightedFormat) }

// View makes it a plan with vectors.
func (p *Plan) View() { p.Vectors, p.Format = true, vectorsFormat }

// Split is the part of a shard's commit log after manifest After, up to manifest To. It is a function of the cut.
type Split struct {
	Shard int   `json:"shard"`
	After int64 `json:"after"`
	To    int64 `json:"to"`
}

// TrainingTasks is how many tasks the stage encoder has.
func (p Plan) TrainingTasks() int { return max(1, p.Trainers) }

// TasksPrefix is the folder of what the tasks of generation g exchange.
func TasksPrefix(g int64) string { return generation.Prefix(g) + generation.TasksFolder }

func planKey(g int64) string { return generation.Prefix(g) + generation.TasksPlan }

// LoadPlan reads the plan of generation g: ErrNoPlan if there is none.
func LoadPlan(ctx context.Context, store sink.Store, g int64) (p Plan, err error) {
	data, err := sink.ReadAll(ctx, store, planKey(g))
	if errors.Is(err, sink.ErrNotFound) {
		return p, fmt.Errorf("generation %d: %w", g, ErrNoPlan)
	}
	if err != nil {
		return p, err
	}
	body, sealed, err := seal.Open(data, sink.PlaceOf(store, planKey(g)))
	if err == nil && !sealed {
		err = errors.New("it has no checksum")
	}
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w: %w", planKey(g), sink.ErrDamaged, err)
	}
	if p.Format < planFormat || p.Format > vectorsFormat || p.Generation != g {
		return p, fmt.Errorf("%s has format %d and generation %d; this program knows formats %d to %d: use the "+
			"release that began the build", planKey(g), p.Format, p.Generation, planFormat, vectorsFormat)
	}
	return p, nil
}

// Create writes the plan if there is none, and returns the one that counts.
func (p Plan) Create(ctx context.Context, store sink.Store) (Plan, error) {
	data, err := seal.JSON(p, sink.PlaceOf(store, planKey(p.Generation)))
	if err != nil {
		return p, err
	}
	err = store.Create(ctx, planKey(p.Generation), data)
	if errors.Is(err, sink.ErrExists) {
		return LoadPlan(ctx, store, p.Generation)
	}
	return p, err
}
