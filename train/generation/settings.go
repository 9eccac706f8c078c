package generation

import "fmt"

// Settings are what a generation is fitted and trained with. They are stored
// in generation.json, so that a build resumes with the settings it began with.
type Settings struct {
	// Profile of the vectorizer: "default" or "pecos".
	Profile string `json:"profile"`
	// MaxDegree: nodes with more neighbours stay labels but are no instances
	// (GIANT uses 1000).
	MaxDegree int `json:"max_degree"`
	// ProjectionDim is the dimension of the fitted text projection (LSA).
	ProjectionDim int `json:"projection_dim"`
	// PIFADim is the dimension of the PIFA sketch: the first columns of the
	// projection. At most ProjectionDim.
	PIFADim int `json:"pifa_dim"`
	// Weighting of PIFA's terms: "sum" (the paper) or "inverse_sqrt_degree" (PECOS).
	Weighting string `json:"pifa_weighting"`
	// LabelFeatures the tree is built from: "pifa", or an ablation of the
	// paper: "pifa-identity", "text", "random".
	LabelFeatures string `json:"label_features"`
	// LeafSize is the most labels a leaf holds, Branching the children per
	// cluster; 0 lets the graph's size decide.
	LeafSize  int    `json:"leaf_size"`
	Branching int    `json:"branching"`
	TreeSeed  uint64 `json:"tree_seed"`
	// Encoder: "bag", "linear" or "bert".
	Encoder string `json:"encoder"`
	// BERT is needed by that encoder.
	BERT *BERT `json:"bert,omitempty"`
	// Epochs of the encoder's training, 0 for its default.
	Epochs int    `json:"epochs"`
	Seed   uint64 `json:"seed"`
	// Holdout is the share of edges hidden from the fit for the evaluation.
	Holdout float64 `json:"holdout_edges"`
	// ProbeRates are the shares of labelled nodes the class probe learns from.
	ProbeRates []float64 `json:"probe_rates"`
	EvalSeed   uint64    `json:"evaluation_seed"`
}

// DefaultSettings are the settings that measured best across graphs
// (docs/MEASUREMENTS.md).
func DefaultSettings() Settings {
	return Settings{
		Profile: "default", MaxDegree: 1000, ProjectionDim: 512, PIFADim: 256,
		Weighting: "sum", LabelFeatures: "pifa", Encoder: "bag", Seed: 1,
		Holdout: 0.05, ProbeRates: []float64{0.1, 0.6}, EvalSeed: 1,
	}
}

func (s Settings) check() error {
	if s.PIFADim < 1 || s.PIFADim > s.ProjectionDim {
		return fmt.Errorf("pifa_dim %d must lie between 1 and projection_dim %d", s.PIFADim, s.ProjectionDim)
	}
	if s.Holdout < 0 || s.Holdout >= 0.9 {
		return fmt.Errorf("holdout_edges %g must lie in [0, 0.9)", s.Holdout)
	}
	return nil
}
