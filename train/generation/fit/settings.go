package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"giantstream/featurize/pairs"
	"giantstream/featurize/pifa"
	"giantstream/featurize/tfidf"
	"giantstream/sink/embedding"
	"giantstream/train/encoders/bert"
	"giantstream/train/sampler"
)

// Settings are what a generation is fitted and trained with. They are stored in generation.json,
// so that a build resumes with the settings that it began with. Those that decide embeddings have a tag config: the
// field's name in the configuration, by which people see it.
type Settings struct {
	// Profile of the vectorizer, see tfidf.ParseProfile.
	Profile string `json:"profile" config:"featurize.profile"`
	// MaxDegree: nodes with more neighbours stay labels but are no instances (GIANT uses 1000).
	MaxDegree int `json:"max_degree" config:"featurize.max_degree"`
	// MaxInstances bounds the nodes that a network is trained on, 0 for no bound; Sampler chooses them, "" for
	// sampler.Uniform. The other nodes stay labels, and are embedded.
	MaxInstances int          `json:"max_instances,omitempty" config:"train.max_instances"`
	Sampler      sampler.Kind `json:"sampler,omitempty" config:"train.sampler"`
	// ProjectionDim is the dimension of the fitted text projection (LSA).
	ProjectionDim int `json:"projection_dim" config:"featurize.projection_dim"`
	// EmbeddingDim is the dimension of the labels' features and of the embeddings of all encoders but
	// a transformer alone. It is at most ProjectionDim: the features are made from the first
	// columns of the projection.
	EmbeddingDim int `json:"pifa_dim" config:"embedding.dim"`
	// Weighting of PIFA's terms, see pifa.ParseWeighting.
	Weighting string `json:"pifa_weighting" config:"featurize.pifa.weighting"`
	// LabelFeatures are what the tree is built from, see pifa.ParseKind.
	LabelFeatures string `json:"label_features" config:"featurize.label_features"`
	// LeafSize is the most labels that a leaf holds, Branching the children per cluster; 0 lets the
	// graph's size decide.
	LeafSize  int    `json:"leaf_size" config:"featurize.tree.leaf_size"`
	Branching int    `json:"branching" config:"featurize.tree.branching"`
	TreeSeed  uint64 `json:"tree_seed" config:"featurize.tree.seed"`
	// FromOrders says which nodes that are ordered together are linked, nil where there are no orders.
	FromOrders *FromOrders `json:"links_from_orders,omitempty"`
	// Relations says how links are weighed, nil where neither kinds nor weights are mapped: all weigh the same.
	Relations *Relations `json:"relations,omitempty"`
	// Encoder is the name of a Kind that is trained.
	Encoder string `json:"encoder" config:"train.encoder"`
	// BERT is needed by that encoder.
	BERT *BERT `json:"bert,omitempty"`
	// Epochs of the encoder's training, 0 for its default.
	Epochs int    `json:"epochs" config:"train.epochs"`
	Seed   uint64 `json:"seed" config:"train.seed"`
	// Holdout is the share of edges hidden from the fit for the evaluation.
	Holdout float64 `json:"holdout_edges" config:"evaluate.holdout_edges"`
	// ProbeRates are the shares of labelled nodes that the class probe learns from.
	ProbeRates []float64 `json:"probe_rates"`
	EvalSeed   uint64    `json:"evaluation_seed" config:"evaluate.seed"`
	// MissingText says what the embedding of a node without text is, one of MissingTexts; "" is
	// Skip.
	MissingText string `json:"missing_text,omitempty" config:"embed.missing_text"`
	// Precision is how an encoder of the kind bert multiplies when it encodes; "" is bert.Float32. Training
	// and the matcher are in float32.
	Precision bert.Precision `json:"precision,omitempty" config:"embed.precision"`
	// Stored is what the generation's embeddings are narrowed to before they are stored. Evaluation
	// and training use all of them.
	Stored embedding.Format `json:"stored_embeddings,omitzero"`
}

// What the embedding of a node without text is.
const (
	// Skip: none; its record says so.
	Skip = "skip"
	// Neighbours: the mean of its neighbours' embeddings.
	Neighbours = "neighbours"
)

// MissingTexts are the values of Settings.MissingText.
var MissingTexts = []string{Skip, Neighbours}

// Relations says how links are weighed, beside what package relations finds.
type Relations struct {
	// HalfLife is the age at which a link has half of its weight, by the newest event time of a link; 0 for none.
	HalfLife time.Duration `json:"half_life,omitempty" config:"links.half_life"`
}

// FromOrders says which nodes that are ordered together are linked (package pairs).
type FromOrders struct {
	Measure        pairs.Measure `json:"measure" config:"links.from_orders.measure"`
	MinSupport     int           `json:"min_support" config:"links.from_orders.min_support"`
	MinAssociation float64       `json:"min_association" config:"links.from_orders.min_association"`
	// MaxPartners of an item, 0 for no links from orders. A pair is linked if it is among those of either item.
	MaxPartners int `json:"max_partners" config:"links.from_orders.max_partners"`
}

// validate returns all faults.
func (o *FromOrders) validate() error {
	if o == nil {
		return nil
	}
	_, err := pairs.ParseMeasure(string(o.Measure))
	if o.MinSupport < 0 || o.MaxPartners < 0 || math.IsNaN(o.MinAssociation) {
		err = errors.Join(err, fmt.Errorf("links_from_orders: min_support %d and max_partners "+
			"%d must be at least 0 and min_association %g a number", o.MinSupport, o.MaxPartners, o.MinAssociation))
	}
	return err
}

// BERT says which model an encoder of the kind bert starts from, and how it is trained.
type BERT struct {
	// Model is a directory as Hugging Face's save_pretrained writes it (docs/format/bert.md).
	Model string `json:"model" config:"train.bert.model"`
	// Pooling is "mean", or "cls" with the pooler.
	Pooling string `json:"pooling" config:"train.bert.pooling"`
	// MaxTokens is where texts are cut.
	MaxTokens int `json:"max_tokens" config:"train.bert.max_tokens"`
	// Dropout and DropTokens are the shares of hidden states and attention, and of a text's
	// tokens, that are dropped in training (bert.TuneOptions).
	Dropout    float64 `json:"dropout,omitempty" config:"train.bert.dropout"`
	DropTokens float64 `json:"drop_tokens,omitempty" config:"train.bert.drop_tokens"`
	// NGrams is how many n-grams have a vector beside the model (package hybrid); the model is then
	// fine-tuned only where Settings.Epochs is above 0. With 0 the model is fine-tuned alone.
	NGrams int `json:"ngrams,omitempty" config:"train.bert.ngrams"`
	// CoarseToFine trains the levels of the tree one after the other, as the paper does, instead
	// of all at once.
	CoarseToFine bool `json:"coarse_to_fine,omitempty" config:"train.bert.coarse_to_fine"`
}

// MaxHoldout is what a share of hidden edges is below.
const MaxHoldout = 0.9

// Validate reports every fault of the settings.
func (s Settings) Validate() error {
	var errs []error
	if s.EmbeddingDim < 1 || s.EmbeddingDim > s.ProjectionDim {
		errs = append(errs, fmt.Errorf("pifa_dim %d must lie between 1 and projection_dim %d", s.EmbeddingDim,
			s.ProjectionDim))
	}
	if !(s.Holdout >= 0 && s.Holdout < MaxHoldout) {
		errs = append(errs, fmt.Errorf("holdout_edges %g must lie in [0, %g)", s.Holdout, MaxHoldout))
	}
	if s.MaxInstances < 0 {
		errs = append(errs, fmt.Errorf("max_instances %d must not be negative; 0 is no bound", s.MaxInstances))
	}
	if s.Sampler != "" {
		_, err := sampler.Parse(string(s.Sampler))
		errs = append(errs, err)
	}
	if s.MissingText != "" && !slices.Contains(MissingTexts, s.MissingText) {
		errs = append(errs, fmt.Errorf("missing_text %q must be one of: %s", s.MissingText,
			strings.Join(MissingTexts, ", ")))
	}
	if err := s.Precision.Validate(); err != nil {
		errs = append(errs, err)
	}
	if s.Relations != nil && s.Relations.HalfLife < 0 {
		errs = append(errs, fmt.Errorf("half_life %v must not be negative; 0 is none", s.Relations.HalfLife))
	}
	_, profile := tfidf.ParseProfile(s.Profile)
	_, weighting := pifa.ParseWeighting(s.Weighting)
	_, features := pifa.ParseKind(s.LabelFeatures)
	_, encoder := trainedKind(s.Encoder)
	return errors.Join(append(errs, s.FromOrders.validate(), profile, weighting, features, encoder)...)
}
