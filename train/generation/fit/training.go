package fit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/objectives/linkpred"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
)

// Inputs are what the stages before the training have made. Training changes none of them.
type Inputs struct {
	// Graph has the known edges: those that the evaluation hides are left out.
	Graph      *train.Graph
	Texts      *Texts
	Vectorizer *tfidf.Model
	Features   *Features // Ψ of every node's text
	Projection *projection.Projection
	// Projected are the projections of every node's text. Where they are nil, training makes those it needs of the
	// features, each once.
	Projected *Projected
	// Labels are the labels' PIFA features, normalized, n × Dim. Dim is the dimension of the
	// embeddings of encoders that start from them.
	Labels []float32
	Dim    int
	// Tree clusters the labels.
	Tree *labeltree.Tree
	// Behaviour, if not nil, is what the items of the graph are ordered with, for encoders that have a view of it.
	// Directions make its rows, and OrderedLinks is the share of the links that orders make.
	Behaviour    *hybrid.ItemView
	Directions   *hybrid.Directions
	OrderedLinks float32
	// Vectors are the items' own vectors, for encoders that have views of them, each of the weight 1.
	Vectors []hybrid.VectorView
	// OpenParent opens the generation that embeddings are to be comparable with, which Train closes. It is nil, or
	// returns nil, if there is none. Average: what the parent has learned is averaged into what is learned.
	Average    bool
	OpenParent func(context.Context) (*Parent, error)
}

// Err returns the first error of reading features or projections. A reader has nowhere to return
// it, so that a stage that has read them asks for it before its result counts.
func (in Inputs) Err() error {
	if in.Projected == nil {
		return in.Features.err()
	}
	return errors.Join(in.Features.err(), in.Projected.err())
}

// projected writes the projection of node i's text to out.
func (in Inputs) projected(i int, out []float32) {
	if in.Projected != nil {
		in.Projected.Row(i, out)
		return
	}
	in.Projection.Apply(in.Features.Row(i), out)
}

// Training is what an encoder is trained from, and how.
type Training struct {
	Inputs
	Settings  Settings
	Resources Resources
	Journal   Journal
	// Share, if not nil, returns the network that is trained in place of an encoder's, which divides its work: that
	// of the part Whole.
	Share func(train.Sliced) train.Network

	opened  *Parent       // what OpenParent has returned
	vectors []VectorStats // what Vectors weigh
}

// parent opens the parent, once; nil if there is none.
func (t *Training) parent(ctx context.Context) (*Parent, error) {
	if t.OpenParent == nil || t.opened != nil {
		return t.opened, nil
	}
	var err error
	t.opened, err = t.OpenParent(ctx)
	return t.opened, err
}

// share returns what is trained of a network as a part of the training.
func (t *Training) share(part Part, net train.Network) train.Network {
	if sliced, ok := net.(train.Sliced); ok && t.Share != nil && part == Whole {
		return t.Share(sliced)
	}
	return net
}

// Part is a part of a training that has checkpoints of its own.
type Part string

// The parts of trainings.
const (
	Whole  Part = "encoder" // the encoder itself
	NGrams Part = "n-grams" // the n-grams beside a transformer, trained after it
)

// Journal keeps what an interrupted training needs to resume.
type Journal interface {
	Checkpoints(ctx context.Context, p Part) (Checkpoints, error)
}

// Checkpoints keep the states of one part of a training.
type Checkpoints interface {
	// Due says after a step whether it is time for a checkpoint.
	Due(step int64) bool
	Save(ctx context.Context, state io.WriterTo) error
	// Resume calls run with the states from the newest to the oldest until run finds one usable,
	// and with nil if there is none: training from the start.
	Resume(ctx context.Context, run func(state io.Reader) error) error
}

// NoJournal keeps nothing: a training that is interrupted starts again.
type NoJournal struct{}

// Checkpoints returns checkpoints that are never due.
func (NoJournal) Checkpoints(context.Context, Part) (Checkpoints, error) { return noCheckpoints{}, nil }

type noCheckpoints struct{}

func (noCheckpoints) Due(int64) bool                                            { return false }
func (noCheckpoints) Save(context.Context, io.WriterTo) error                   { return nil }
func (noCheckpoints) Resume(_ context.Context, run func(io.Reader) error) error { return run(nil) }

// save keeps a state, unless it was trained on features that could not be read.
func (t *Training) save(ctx context.Context, c Checkpoints, state io.WriterTo) error {
	if err := t.Err(); err != nil {
		return err
	}
	return c.Save(ctx, state)
}

// Trained is an encoder and what its training left beside it.
type Trained struct {
	Encoder train.Encoder
	// Metrics are the training's own report.
	Metrics any
	// Aligned: the embeddings are turned to where the parent's are.
	Aligned bool
	// Matcher predicts the clusters of neighbours, nil for encoders that have none.
	Matcher *xmc.Matcher
	// Curve has the loss over the steps, nil for trainings that record none.
	Curve *trainer.Report
	// Vectors are what the items' own vectors weigh.
	Vectors []VectorStats
}

// Uninterrupted makes the metrics those of a training that was never interrupted, which they tell apart.
func (t *Trained) Uninterrupted() {
	switch m := t.Metrics.(type) {
	case xrt.BagReport:
		m.Resumed = 0
		t.Metrics = m
	case hybridReport:
		m.Resumed = 0
		t.Metrics = m
	case bertReport:
		if m.Report != nil {
			m.Report.Resumed = 0
		}
		if m.NGrams != nil {
			m.NGrams.Resumed = 0
		}
	}
}

// Train trains an encoder of the given kind on the neighbourhoods of t.Graph.
func Train(ctx context.Context, kind string, t Training) (*Trained, error) {
	k, err := trainedKind(kind)
	if err != nil {
		return nil, err
	}
	defer func() { t.opened.Close() }() //nolint:errcheck // it was read, whatever a device says
	trained, err := k.train(ctx, &t)
	if err = errors.Join(err, t.Err()); err != nil {
		return nil, err
	}
	trained.Vectors = t.vectors
	return trained, t.orient(ctx, trained)
}

// TrainOrTextAlone is Train, and for a graph that has nothing to learn from the encoder of the texts alone. why says
// then what is missing.
func TrainOrTextAlone(ctx context.Context, kind string, t Training) (trained *Trained, why string, err error) {
	if HasInstances(t.Graph, t.Settings) {
		trained, err := Train(ctx, kind, t)
		if !errors.Is(err, xmc.ErrNoLevels) && !errors.Is(err, linear.ErrSingular) {
			return trained, "", err
		}
	}
	encoder, err := linear.NewLSA(t.Vectorizer, t.Projection, t.Dim)
	if err != nil {
		return nil, "", err
	}
	return &Trained{Encoder: encoder}, NothingToPredict, nil
}

// NothingToPredict: the tree has one leaf, say, because all nodes have the same neighbours.
const NothingToPredict = "the nodes' links are too few or too alike to predict"

// Network is an encoder's network before training.
type Network struct {
	train.Network
	Encoder train.Encoder // shares the network's weights
	// LinkPrediction are the options that suit the network where link prediction trains it.
	LinkPrediction linkpred.Options
	tokens         func() int64 // tokens that the network has taken, nil for networks without tokens
	close          func() error // nil for networks that hold nothing on a device
}

// Close frees what the training takes on a device. The encoder and its weights remain.
func (n *Network) Close() error {
	if n.close == nil {
		return nil
	}
	return n.close()
}

// NewNetwork returns an untrained network of the given kind, which starts from the texts alone.
func NewNetwork(ctx context.Context, kind string, t Training) (*Network, error) {
	k, err := trainedKind(kind)
	if err != nil {
		return nil, err
	}
	if k.network == nil {
		return nil, fmt.Errorf("the encoder %s has no network; use %s", kind, KindList(Kind.HasNetwork))
	}
	return k.network(ctx, &t)
}

// Pretrained returns the model that training an encoder of the given kind starts from, as it came.
func Pretrained(kind string, t Training) (train.Encoder, error) {
	k, err := trainedKind(kind)
	if err != nil {
		return nil, err
	}
	if k.pretrained == nil {
		return nil, fmt.Errorf("the encoder %s starts from no model", kind)
	}
	return k.pretrained(&t)
}

func trainedKind(name string) (Kind, error) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name && k.train != nil })
	if i < 0 {
		return Kind{}, fmt.Errorf("unknown encoder %q; use %s", name, KindList(Kind.Trained))
	}
	return kinds[i], nil
}
