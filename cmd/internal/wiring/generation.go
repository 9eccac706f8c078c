package wiring

import (
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric/blas"
)

// NewBuilder returns a builder of the generations that the configuration describes, with transformers on
// the device that OpenDevice has opened, nil for the CPU. A builder that keeps generations needs the
// store of a lease; with a nil store it keeps nothing.
func NewBuilder(cfg *config.Config, store sink.Store, device compute.Backend, p train.Progress,
	log *slog.Logger) *generation.Builder {
	return &generation.Builder{Store: store, Settings: SettingsOf(cfg), Gate: generation.Gate(cfg.Refresh.QualityGate),
		NewSpace:        cfg.Refresh.Space == "new",
		CheckpointEvery: cfg.Train.CheckpointEvery, Resources: ResourcesOf(cfg, device, p, log)}
}

// ResourcesOf returns what the configuration lets a build or a study use, with transformers on the
// device that OpenDevice has opened, nil for the CPU.
func ResourcesOf(cfg *config.Config, device compute.Backend, p train.Progress, log *slog.Logger) fit.Resources {
	return fit.Resources{Workers: cfg.Train.Threads, MemoryLimit: int64(cfg.Featurize.MemoryLimit), Device: device,
		Progress: p, Log: log, Now: time.Now}
}

// SettingsOf returns what the configuration says about generations.
func SettingsOf(cfg *config.Config) fit.Settings {
	f := cfg.Featurize
	s := fit.Settings{
		Profile: f.Profile, MaxDegree: f.MaxDegree, ProjectionDim: f.ProjectionDim,
		EmbeddingDim: cfg.Embedding.Dim, Weighting: f.PIFA.Weighting, LabelFeatures: f.LabelFeatures,
		LeafSize: f.Tree.LeafSize, Branching: f.Tree.Branching, TreeSeed: f.Tree.Seed,
		Encoder: cfg.Train.Encoder, Epochs: cfg.Train.Epochs, Seed: cfg.Train.Seed,
		Stored:  FormatOf(cfg),
		Holdout: cfg.Evaluate.HoldoutEdges, ProbeRates: cfg.Evaluate.ProbeRates, EvalSeed: cfg.Evaluate.Seed,
		MissingText: cfg.Embed.MissingText,
	}
	if p := bert.Precision(cfg.Embed.Precision); p != bert.Float32 {
		s.Precision = p // "" otherwise, as in documents of before there was another
	}
	if b := cfg.Train.BERT; b.Model != "" {
		s.BERT = &fit.BERT{
			Model: b.Model, Pooling: b.Pooling, MaxTokens: b.MaxTokens, Dropout: b.Dropout, DropTokens: b.DropTokens,
			NGrams: b.NGrams, CoarseToFine: b.CoarseToFine,
		}
	}
	return s
}

// FormatOf returns the size of the vectors that are stored and published.
func FormatOf(cfg *config.Config) embedding.Format {
	f := embedding.Format{Type: embedding.Type(cfg.Sink.EmbeddingType), Dim: cfg.Sink.EmbeddingDim}
	if f.Type == embedding.Float32 {
		f.Type = "" // as documents of before there were others have it
	}
	return f
}

// Limit bounds the memory of this process by featurize.memory_limit, and the cores that train by
// train.threads.
func Limit(cfg *config.Config) {
	limitMemory(cfg)
	if cfg.Train.Threads > 0 {
		blas32.Use(blas.New().Limit(cfg.Train.Threads))
	}
}

// limitMemory makes the Go runtime collect garbage rather than grow beyond featurize.memory_limit.
// By default the heap may double between two collections, so a build that needs 1 GiB would take 2
// GiB. The limit is soft: a build that needs more gets more, and spends up to half of its time
// collecting. GOMEMLIMIT, where it is set, takes precedence.
func limitMemory(cfg *config.Config) {
	if limit := int64(cfg.Featurize.MemoryLimit); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
