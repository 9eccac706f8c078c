package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/service"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/s3store"
	"giantstream/sink/stores"
	"giantstream/stream"
)

// pipelineFlags say which pipeline a command works on: a configuration file,
// a store on its own, or flags over either.
type pipelineFlags struct {
	file  string
	store string
}

func (f *pipelineFlags) register(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "config", "c", "", "configuration `file` (see 'giantstream config example')")
	c.Flags().StringVar(&f.store, "store", "", "object store: a directory, file:///dir or s3://bucket/prefix")
}

// encoderFlags say which encoder to train, over the configuration.
type encoderFlags struct{ kind, model string }

func (f *encoderFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.kind, "encoder", "", "bag, linear or bert, for a generation that begins (default: the configuration's, bag)")
	f.registerModel(c)
}

func (f *encoderFlags) registerModel(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "directory of the pretrained model that bert starts from (config.json, vocab.txt, model.safetensors)")
}

func (f *encoderFlags) apply(cfg *config.Config) {
	if f.kind != "" {
		cfg.Train.Encoder = f.kind
	}
	if f.model != "" {
		cfg.Train.BERT.Model = f.model
	}
}

// load returns the configuration: the file's, or the defaults for --store.
func (f *pipelineFlags) load() (*config.Config, error) {
	var cfg *config.Config
	switch {
	case f.file != "":
		c, err := config.Load(f.file)
		if err != nil {
			return nil, usageError{err}
		}
		cfg = &c
	case f.store != "":
		c := config.Default()
		cfg = &c
		cfg.Pipeline = "giantstream"
	default:
		return nil, usageError{errors.New("give a configuration with -c FILE, or a store with --store DIR")}
	}
	if f.store != "" {
		if err := placeAt(cfg, f.store); err != nil {
			return nil, usageError{err}
		}
	}
	return cfg, nil
}

// placeAt puts the store, and what else lives on the local disk, at a place
// given on the command line. A directory holds everything: broker and state
// go under its local/ folder.
func placeAt(cfg *config.Config, store string) error {
	dir, isURL := store, strings.Contains(store, "://")
	if isURL {
		cfg.Store = store
		if !strings.HasPrefix(store, "file://") {
			return nil
		}
		dir = strings.TrimPrefix(store, "file://")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cfg.Store = "file://" + filepath.ToSlash(dir)
	cfg.StateDir = filepath.Join(dir, "local", "state")
	cfg.Kafka.DataDir = filepath.Join(dir, "local", "broker")
	return nil
}

// check is the last look at a configuration, after flags were put over it.
func check(cfg *config.Config) error {
	if err := cfg.Validate(); err != nil {
		return usageError{err}
	}
	if err := service.Check(cfg); err != nil {
		return usageError{err}
	}
	return nil
}

// openStore opens the pipeline's object store.
func openStore(ctx context.Context, cfg *config.Config) (sink.Store, error) {
	return stores.Open(ctx, cfg.Store, stores.Options{S3: s3store.Options{
		Endpoint: cfg.S3.Endpoint, Region: cfg.S3.Region, PathStyle: cfg.S3.PathStyle, Insecure: cfg.S3.Insecure,
		AccessKey: string(cfg.S3.AccessKey), SecretKey: string(cfg.S3.SecretKey), CAFile: cfg.S3.CAFile,
	}})
}

// pipeline is a pipeline that exists: its store has an identity.
type pipeline struct {
	cfg   *config.Config
	store sink.Store
	id    stream.Identity
}

// open loads the configuration and opens the pipeline that it names.
func (f *pipelineFlags) open(ctx context.Context) (*pipeline, error) {
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	store, err := openStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	id, err := stream.LoadIdentity(ctx, store)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%s holds no pipeline yet: 'giantstream run' creates one", store.URL())
	}
	return &pipeline{cfg, store, id}, err
}
