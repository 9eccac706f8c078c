package wiring

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/config"
	"giantstream/internal/ambient"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/drift"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric/blas"
	"giantstream/train/sampler"
)

// RequestOf returns the generation that the configuration asks for, without how it is divided.
func RequestOf(cfg *config.Config) build.Request {
	s := SettingsOf(cfg)
	if !relatesLinks(cfg) {
		s.Relations = nil
	}
	return build.Request{Settings: s, Gate: generation.Gate(cfg.Refresh.QualityGate),
		NewSpace: cfg.Refresh.Space == "new", Afresh: cfg.Refresh.Space == "turn",
		Canary: cfg.Sink.CanaryTopic != ""}
}

// ResourcesOf returns what the configuration lets a build or a study use, with transformers on the
// device that OpenDevice has opened, nil for the CPU.
func ResourcesOf(cfg *config.Config, device compute.Backend, p ambient.Progress, log *slog.Logger) fit.Resources {
	return fit.Resources{Workers: cfg.Train.Threads, MemoryLimit: int64(cfg.Featurize.MemoryLimit), Device: device,
		Progress: p, Log: log, Now: time.Now}
}

// SettingsOf returns what the configuration says about generations.
func SettingsOf(cfg *config.Config) fit.Settings {
	s := fit.Settings{Stored: FormatOf(cfg), ProbeRates: cfg.Evaluate.ProbeRates,
		FromOrders: &fit.FromOrders{}, Relations: &fit.Relations{}}
	if cfg.Train.BERT.Model != "" {
		s.BERT = &fit.BERT{}
	}
	values := map[string]reflect.Value{}
	cfg.EachField(func(path string, v reflect.Value, _ config.Effect) { values[path] = v })
	eachSetting(reflect.ValueOf(&s).Elem(), func(path string, v reflect.Value) {
		v.Set(values[path].Convert(v.Type()))
	})
	if s.MaxInstances == 0 {
		s.Sampler = ""
	}
	if s.Precision == bert.Float32 {
		s.Precision = "" // as in documents older than the other precisions
	}
	return s
}

// relatesLinks says whether the mapping gives links kinds or weights, or age is to weigh them.
func relatesLinks(cfg *config.Config) bool {
	kinds := func(path string) bool { return strings.Contains(path, "=") }
	return cfg.Links.HalfLife != 0 || cfg.Ingest.Edges.Weight != "" || cfg.Ingest.Edges.Kind != "" ||
		len(cfg.Ingest.Edges.Topics) > 0 ||
		slices.ContainsFunc(cfg.Ingest.Nodes.Edges, kinds)
}

// eachSetting calls f for each field of fit.Settings that decides embeddings: those that have a tag config, which names
// the field in the configuration.
func eachSetting(v reflect.Value, f func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		field, path := v.Field(i), v.Type().Field(i).Tag.Get("config")
		switch {
		case path != "":
			f(path, field)
		case field.Kind() == reflect.Pointer && !field.IsNil():
			eachSetting(field.Elem(), f)
		}
	}
}

// DriftThresholds returns by how much what came since a generation's cut must be worse for a new one to start.
func DriftThresholds(cfg *config.Config) drift.Thresholds {
	d := cfg.Refresh.Drift
	return drift.Thresholds{UnknownNGrams: d.UnknownNGrams, LabelFit: d.LabelFit, LinkAUC: d.LinkAUC, Cosine: d.Cosine}
}

// EncodingSettings returns what decides the embeddings of a generation beside its graph, by the names that
// the fields have in the configuration.
func EncodingSettings(s fit.Settings) map[string]string {
	s.Sampler, s.MissingText = cmp.Or(s.Sampler, sampler.Uniform), cmp.Or(s.MissingText, fit.Skip)
	s.Precision = cmp.Or(s.Precision, bert.Float32)
	if s.Encoder != bert.Kind {
		s.BERT = nil
	}
	texts := map[string]string{}
	eachSetting(reflect.ValueOf(s), func(path string, v reflect.Value) { texts[path] = fmt.Sprint(v) })
	if s.BERT == nil {
		delete(texts, "embed.precision") // of transformers alone
	}
	if s.Relations == nil || s.Relations.HalfLife == 0 {
		delete(texts, "links.half_life") // a mapping of kinds or weights is no change of embeddings by itself
	}
	return texts
}

// ChangedSettings returns what the configuration asks of embeddings and a generation's do not have, a
// setting each, with its old and its new value. Vectors that are stored larger than they are asked for are no
// difference: they are narrowed when they are published.
func ChangedSettings(doc *generation.Doc, cfg *config.Config) []string {
	wanted := SettingsOf(cfg)
	if doc.Settings.FromOrders == nil { // of a generation without orders they decide nothing
		wanted.FromOrders = nil
	}
	changed := commitlog.Difference(EncodingSettings(doc.Settings), EncodingSettings(wanted))
	asked := FormatOf(cfg)
	if stored := doc.Settings.Stored; asked.LimitTo(stored).String() != asked.String() {
		changed = append(changed, fmt.Sprintf("sink.embedding_type and sink.embedding_dim were %s and are %s",
			stored, asked))
	}
	return changed
}

// FormatOf returns the size of the vectors that are stored and published.
func FormatOf(cfg *config.Config) embedding.Format {
	f := embedding.Format{Type: embedding.Type(cfg.Sink.EmbeddingType), Dim: cfg.Sink.EmbeddingDim}
	if f.Type == embedding.Float32 {
		f.Type = "" // as in documents older than the other types
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
