package fit

import (
	"cmp"
	"context"
	"strings"

	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
)

// Kind is a kind of encoder: what commands, configuration and builds know of it. How a trained
// encoder is stored is in package encoders.
type Kind struct {
	// Name is its name in configuration, artifacts and figures.
	Name string
	// Title is its name for people.
	Title string
	// NeedsModel: training starts from a pretrained model, a folder that the user names.
	NeedsModel bool
	// InSteps: it is trained in steps, which can be resumed, and which several processes can share.
	InSteps bool
	// Items: it has views of items beside those of their texts, of what they are ordered with and of their own vectors.
	Items bool

	// train trains an encoder; nil for a baseline that is not trained.
	train func(context.Context, *Training) (*Trained, error)
	// network, if there is one, returns the untrained network.
	network func(context.Context, *Training) (*Network, error)
	// pretrained, if training starts from a model, returns the model.
	pretrained func(*Training) (train.Encoder, error)
}

// kinds is the table of all encoders, in the order that messages name them.
var kinds = []Kind{
	{Name: hybrid.Kind, Title: "hybrid", InSteps: true, Items: true, train: trainHybrid},
	{Name: bag.Kind, Title: "bag", InSteps: true,
		train: trainBag, network: bagNetwork},
	{Name: linear.Kind, Title: "linear",
		train: trainLinear},
	{Name: bert.Kind, Title: "bert",
		NeedsModel: true, InSteps: true, Items: true,
		train: trainBERT, network: bertNetwork, pretrained: pretrainedBERT},
	{Name: linear.LSAKind, Title: "lsa (text only)"}, // the baseline
}

// Kinds returns all kinds of encoders.
func Kinds() []Kind { return kinds }

// KindOf returns a kind of encoder by its name; one that nobody knows has no properties.
func KindOf(name string) Kind {
	for _, k := range kinds {
		if k.Name == name {
			return k
		}
	}
	return Kind{}
}

// Trained says whether encoders of this kind are trained; else they are a baseline.
func (k Kind) Trained() bool { return k.train != nil }

// HasNetwork says whether NewNetwork has an untrained network of this kind.
func (k Kind) HasNetwork() bool { return k.network != nil }

func names(of func(Kind) bool) (out []string) {
	for _, k := range kinds {
		if of(k) {
			out = append(out, k.Name)
		}
	}
	return out
}

// KindList lists the names of some kinds as "a, b or c".
func KindList(of func(Kind) bool) string {
	all := names(of)
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// Title returns the name of a kind of encoder for people.
func Title(kind string) string {
	return cmp.Or(KindOf(kind).Title, kind)
}
