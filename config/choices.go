package config

// Names that packages below define, and that this package may not import. A test of
// cmd/internal/wiring compares the lists with the tables in featurize/tfidf, featurize/pifa and
// train/generation/fit, and with the gates of train/generation.
var (
	Encoders      = []string{"hybrid", "bag", "linear", "bert"}
	Profiles      = []string{"default", "pecos"}
	Weightings    = []string{"sum", "inverse_sqrt_degree"}
	LabelFeatures = []string{"pifa", "pifa-identity", "text", "random"}
	GPUMaths      = []string{"float32", "tf32", "bf16"}
	Precisions    = []string{"float32", "int8"}
	QualityGates  = []string{"warn", "block", "off"}
	Spaces        = []string{"keep", "new"}
)
