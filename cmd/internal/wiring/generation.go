package wiring

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/drift"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric/blas"
	"giantstream/train/sampler"
)

// NewBuilder returns a builder of the generations that the configuration describes, with transformers on
// the device that OpenDevice has opened, nil for the CPU. A builder that keeps generations needs the
// store of a lease; with a nil store it keeps nothing.
func NewBuilder(cfg *config.Config, store sink.Store, device compute.Backend, p train.Progress,
	log *slog.Logger) *generation.Builder {
	return &generation.Builder{Store: store, Settings: SettingsOf(cfg), Gate: generation.Gate(cfg.Refresh.QualityGate),
		NewSpace:        cfg.Refresh.Space == "new",
		WarmUnknown:     cfg.Refresh.Drift.UnknownNGrams,
		Canary:          cfg.Sink.CanaryTopic != "",
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
	if n := cfg.Train.MaxInstances; n > 0 {
		s.MaxInstances, s.Sampler = n, sampler.Kind(cfg.Train.Sampler)
	}
	if b := cfg.Train.BERT; b.Model != "" {
		s.BERT = &fit.BERT{
			Model: b.Model, Pooling: b.Pooling, MaxTokens: b.MaxTokens, Dropout: b.Dropout, DropTokens: b.DropTokens,
			NGrams: b.NGrams, CoarseToFine: b.CoarseToFine,
		}
	}
	return s
}

// DriftThresholds returns by how much what came since a generation's cut must be worse for a new one to start.
func DriftThresholds(cfg *config.Config) drift.Thresholds {
	d := cfg.Refresh.Drift
	return drift.Thresholds{UnknownNGrams: d.UnknownNGrams, LabelFit: d.LabelFit, LinkAUC: d.LinkAUC, Cosine: d.Cosine}
}

// EncodingSettings returns what decides the embeddings of a generation beside its graph, by the names that
// the fields have in the configuration.
func EncodingSettings(s fit.Settings) map[string]string {
	named := map[string]any{
		"featurize.profile":        s.Profile,
		"featurize.max_degree":     s.MaxDegree,
		"featurize.projection_dim": s.ProjectionDim,
		"featurize.pifa.weighting": s.Weighting,
		"featurize.label_features": s.LabelFeatures,
		"featurize.tree.leaf_size": s.LeafSize,
		"featurize.tree.branching": s.Branching,
		"featurize.tree.seed":      s.TreeSeed,
		"embedding.dim":            s.EmbeddingDim,
		"train.encoder":            s.Encoder,
		"train.epochs":             s.Epochs,
		"train.seed":               s.Seed,
		"train.max_instances":      s.MaxInstances,
		"train.sampler":            cmp.Or(s.Sampler, sampler.Uniform),
		"evaluate.holdout_edges":   s.Holdout,
		"evaluate.seed":            s.EvalSeed,
		"embed.missing_text":       cmp.Or(s.MissingText, fit.Skip),
	}
	if b := s.BERT; b != nil && s.Encoder == bert.Kind {
		maps.Copy(named, map[string]any{
			"embed.precision":           cmp.Or(s.Precision, bert.Float32),
			"train.bert.model":          b.Model,
			"train.bert.pooling":        b.Pooling,
			"train.bert.max_tokens":     b.MaxTokens,
			"train.bert.dropout":        b.Dropout,
			"train.bert.drop_tokens":    b.DropTokens,
			"train.bert.ngrams":         b.NGrams,
			"train.bert.coarse_to_fine": b.CoarseToFine,
		})
	}
	texts := make(map[string]string, len(named))
	for name, value := range named {
		texts[name] = fmt.Sprint(value)
	}
	return texts
}

// ChangedSettings returns what the configuration asks of embeddings and a generation's do not have, a
// setting each, with its old and its new value. Vectors that are stored larger than they are asked for are no
// difference: they are narrowed when they are published.
func ChangedSettings(doc *generation.Doc, cfg *config.Config) []string {
	changed := commitlog.Difference(EncodingSettings(doc.Settings), EncodingSettings(SettingsOf(cfg)))
	asked := FormatOf(cfg)
	if stored := doc.Settings.Stored; asked.Within(stored).String() != asked.String() {
		changed = append(changed, fmt.Sprintf("sink.embedding_type and sink.embedding_dim were %s and are %s",
			stored, asked))
	}
	return changed
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

// started is the limit of the Go runtime that this process was started with: GOMEMLIMIT, math.MaxInt64 for none.
var started = debug.SetMemoryLimit(-1)

// limitMemory makes the Go runtime collect garbage rather than let the process grow beyond featurize.memory_limit, or
// GOMEMLIMIT where it is set. By default the heap may double between two collections, so a build that needs 1 GiB would
// take 2 GiB. The limit is soft: a build that needs more gets more, and spends up to half of its time collecting.
func limitMemory(cfg *config.Config) {
	limit := int64(cfg.Featurize.MemoryLimit)
	if os.Getenv("GOMEMLIMIT") != "" {
		limit = started
	}
	LimitMemory(limit)
}

// LimitMemory bounds the resident memory of this process: no bound for 0 or math.MaxInt64. The runtime counts neither
// the program's own pages nor what it allocates while it collects, which has been up to 13 MiB beyond its limit. So it
// gets a sixteenth less.
func LimitMemory(limit int64) {
	if limit > 0 && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit - limit/16)
	}
}
