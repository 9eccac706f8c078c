package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/profiles"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// PipelineFlags name the pipeline that a command works on, by a configuration file, a store, or
// both.
type PipelineFlags struct {
	File  string
	Store string
	set   []string
	// WithSinks: the command reaches the databases of sinks, and needs their secrets.
	WithSinks bool
	// Profile is the name of a profile, "" for none. Only commands that take files have the flag.
	Profile string
}

// Register adds --config, --store and --set to a command.
func (f *PipelineFlags) Register(c *cobra.Command) {
	c.Flags().StringVarP(&f.File, "config", "c", "", "configuration `file` (see 'giantstream config example')")
	c.Flags().StringVar(&f.Store, "store", "", "object store: a directory, file:///dir or s3://bucket/prefix")
	RegisterSet(c, &f.set)
}

// RegisterProfile adds --profile to a command that takes files.
func (f *PipelineFlags) RegisterProfile(c *cobra.Command) {
	c.Flags().StringVar(&f.Profile, "profile", "", "`NAME` of an export whose columns are known: "+
		strings.Join(profiles.Names(), ", ")+" (see 'giantstream config profiles')")
}

// WithProfile returns a configuration with the settings of the profile, if one is named.
func (f *PipelineFlags) WithProfile(defaults config.Config) (config.Config, error) {
	if f.Profile == "" {
		return defaults, nil
	}
	p, err := profiles.Find(f.Profile)
	if err != nil {
		return defaults, fmt.Errorf("--profile: %w", err)
	}
	return p.ApplyTo(&defaults)
}

// Local returns the configuration of a command that has neither a file nor a store.
func (f *PipelineFlags) Local() (*config.Config, error) {
	cfg, err := f.WithProfile(config.Local())
	if err == nil {
		err = cfg.Set(f.set...)
	}
	if err != nil {
		return nil, UsageError(err)
	}
	return &cfg, nil
}

// RegisterSet adds --set to a command.
func RegisterSet(c *cobra.Command, set *[]string) {
	c.Flags().StringArrayVar(set, "set", nil,
		"a `FIELD=VALUE` of the configuration, over that of the file, as in window.time=2s; repeatable")
}

// EncoderFlags override the configuration's encoder.
type EncoderFlags struct{ kind, model string }

// Register adds --encoder and --model to a command.
func (f *EncoderFlags) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.kind, "encoder", "",
		fit.KindList(fit.Kind.Trained)+", for a generation that begins (default: the configuration's, hybrid)")
	f.RegisterModel(c)
}

// RegisterModel adds --model alone to a command.
func (f *EncoderFlags) RegisterModel(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "",
		"directory of the pretrained model that bert starts from (config.json, vocab.txt, model.safetensors)")
}

// ModelGiven says whether --model was given.
func (f *EncoderFlags) ModelGiven() bool { return f.model != "" }

// Apply sets the fields of the configuration that flags were given for.
func (f *EncoderFlags) Apply(cfg *config.Config) {
	if f.kind != "" {
		cfg.Train.Encoder = f.kind
	}
	if f.model != "" {
		cfg.Train.BERT.Model = f.model
	}
}

// Load returns the configuration: the file's, or the defaults for --store.
func (f *PipelineFlags) Load() (*config.Config, error) {
	var cfg *config.Config
	switch {
	case f.File != "":
		c, err := f.WithProfile(config.Default())
		if err == nil {
			c, err = wiring.LoadOver(c, f.WithSinks, f.File, f.set...)
		}
		if err != nil {
			return nil, UsageError(err)
		}
		cfg = &c
	case f.Store != "":
		return f.loadFromStore()
	default:
		return nil, UsageError(errors.New("give a configuration with -c FILE, or a store with --store DIR"))
	}
	if f.Store != "" {
		if err := PlaceAt(cfg, f.Store); err != nil {
			return nil, UsageError(err)
		}
	}
	return cfg, nil
}

// OfStore returns the configuration that a store keeps of its pipeline, with assignments over it.
func OfStore(store string, set ...string) (*config.Config, error) {
	f := PipelineFlags{Store: store, set: set}
	return f.loadFromStore()
}

// loadFromStore returns the configuration of a command that is given a store alone. The profile and --set stand over
// what the store says, so that a command which opens the store finds a contradiction.
func (f *PipelineFlags) loadFromStore() (*config.Config, error) {
	cfg := config.Local()
	if err := PlaceAt(&cfg, f.Store); err != nil {
		return nil, UsageError(err)
	}
	if err := cfg.Set(f.set...); err != nil { // fields of s3, by which a bucket is reached
		return nil, UsageError(err)
	}
	if err := adopt(&cfg, f.Store); err != nil {
		return nil, err
	}
	cfg, err := f.WithProfile(cfg)
	if err == nil {
		err = cfg.Set(f.set...)
	}
	if err != nil {
		return nil, UsageError(err)
	}
	return &cfg, CheckConfig(&cfg)
}

// adopt gives the configuration of a store what decides the graph of the pipeline that is there, and the settings of
// its newest generation, so that the store of the quickstart, too, can be worked on without a configuration, and what
// no flag asks to change stays as it is.
func adopt(cfg *config.Config, store string) error {
	if dir, ok := wiring.StoreDir(store); ok {
		if _, err := os.Stat(dir); err != nil {
			return nil //nolint:nilerr // the command that opens the store reports it
		}
	}
	ctx := context.Background()
	s, err := wiring.OpenStore(ctx, cfg)
	if err != nil {
		return nil //nolint:nilerr // as above, or the configuration's check
	}
	id, err := commitlog.LoadIdentity(ctx, s)
	switch {
	case errors.Is(err, sink.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	cfg.Pipeline, cfg.Shards, cfg.Ingest.Undirected = id.Name, id.Shards, id.Undirected
	if bound, err := id.Binds(ctx, s); err != nil || !bound {
		return err // nothing was read with its settings
	}
	if err := cfg.Restore(id.Settings); err != nil {
		return fmt.Errorf("store %s: read the settings that it was made with: %w", s.URL(), err)
	}
	return adoptSettings(ctx, cfg, s)
}

// adoptSettings takes over what decides the embeddings of the newest generation. A generation that is damaged,
// and settings that this version does not know, leave the defaults.
func adoptSettings(ctx context.Context, cfg *config.Config, store sink.Store) error {
	gens, err := generation.Numbers(ctx, store)
	if err != nil || len(gens) == 0 {
		return err
	}
	doc, err := generation.Load(ctx, store, gens[len(gens)-1])
	if errors.Is(err, generation.ErrNone) || errors.Is(err, generation.ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	adopted := *cfg
	for name, value := range wiring.EncodingSettings(doc.Settings) {
		if err := adopted.Set(name + "=" + strings.ReplaceAll(value, "${", "$${")); err != nil {
			return nil //nolint:nilerr // the defaults are as good as before
		}
	}
	stored := doc.Settings.Stored
	adopted.Sink.EmbeddingType = string(cmp.Or(stored.Type, embedding.Float32))
	adopted.Sink.EmbeddingDim = stored.Dim
	if adopted.Validate() == nil {
		*cfg = adopted
	}
	return nil
}

// PlaceAt sets the store to a place given on the command line. A directory holds everything: the
// broker's log and the shards' state go under its local/ folder.
func PlaceAt(cfg *config.Config, store string) error {
	dir, ok := wiring.StoreDir(store)
	if !ok { // a bucket, or what OpenStore refuses
		cfg.Store = store
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cfg.Store = wiring.DirURL(dir)
	cfg.StateDir = filepath.Join(dir, "local", "state")
	cfg.Kafka.DataDir = filepath.Join(dir, "local", "broker")
	return nil
}

// CheckConfig validates a configuration after flags have changed it.
func CheckConfig(cfg *config.Config) error {
	if err := cfg.Validate(); err != nil {
		return UsageError(err)
	}
	if err := wiring.Check(cfg); err != nil {
		return UsageError(err)
	}
	return nil
}
