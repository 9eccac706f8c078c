package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/generation"
	"giantstream/train/generation/study"
)

// workplace is what every command works with: the configuration, its store, a log, and a place to
// show progress. Memory and cores are limited as the configuration says.
type workplace struct {
	cfg      *config.Config
	store    sink.Store
	log      *slog.Logger
	progress *console.Progress
	device   devices.Device // nil until openDevice
}

// workplace opens the store of a configuration. level is the command's own log level, "" for the
// default.
func (a *app) workplace(ctx context.Context, cfg *config.Config, level string) (*workplace, error) {
	log, err := a.logger(level, cfg.Log.Format)
	if err != nil {
		return nil, err
	}
	for _, hint := range cfg.Renamed() {
		log.Warn("configuration: " + hint)
	}
	store, err := wiring.OpenStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	wiring.Limit(cfg)
	return &workplace{cfg: cfg, store: store, log: log, progress: console.New(a.err, log)}, nil
}

// openDevice opens what transformers run on, for a command that trains or encodes, until the function
// that it returns is called.
func (a *app) openDevice(w *workplace) (closeDevice func(), err error) {
	w.device, err = wiring.OpenDevice(w.cfg, a.drivers, w.log)
	if errors.Is(err, devices.ErrNoDriver) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, err
	}
	return func() {
		if err := w.device.Close(); err != nil {
			w.log.Warn("the device could not be given back; the end of this process does it", "error", err)
		}
	}, nil
}

// start starts the service on a workplace, for a command that sends all its input itself.
func (w *workplace) start(ctx context.Context, roles service.Roles) (*service.Service, error) {
	return service.Start(ctx, service.Options{Config: w.cfg, Store: w.store, Log: w.log, Roles: roles,
		Device: w.device, Progress: w.progress, Resent: true})
}

// builder returns a builder of generations that keeps them in store.
func (w *workplace) builder(store sink.Store) *generation.Builder {
	return wiring.NewBuilder(w.cfg, store, w.device, w.progress, w.log)
}

// study returns the options of a study.
func (w *workplace) study() study.Options {
	return study.Options{Settings: wiring.SettingsOf(w.cfg),
		Resources: wiring.ResourcesOf(w.cfg, w.device, w.progress, w.log)}
}

// pipeline is the workplace of a pipeline that exists: its store has an identity.
type pipeline struct {
	*workplace
	id commitlog.Identity
	// configured: a file names the settings, not --store alone.
	configured bool
}

// open loads the configuration, puts the command's flags over it, and opens the pipeline that it
// names.
func (a *app) open(ctx context.Context, f *pipelineFlags, flags ...func(*config.Config)) (*pipeline, error) {
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	for _, apply := range flags {
		apply(cfg)
		if err := check(cfg); err != nil {
			return nil, err
		}
	}
	return a.openStore(ctx, cfg, f.file != "")
}

// openStore opens the pipeline of a configuration. configured says whether a file names its settings.
func (a *app) openStore(ctx context.Context, cfg *config.Config, configured bool) (*pipeline, error) {
	// A command that looks creates no directory for a store whose name is misspelt.
	if dir, ok := wiring.StoreDir(cfg.Store); ok {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no store at %s; 'giantstream run' creates one", dir)
		}
	}
	w, err := a.workplace(ctx, cfg, "")
	if err != nil {
		return nil, err
	}
	id, err := commitlog.LoadIdentity(ctx, w.store)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%s holds no pipeline yet: 'giantstream run' creates one", w.store.URL())
	}
	return &pipeline{w, id, configured}, err
}

// source is the graph as of a cut, nil for everything committed. It is a build's source.
func (p *pipeline) source(ctx context.Context, at map[int]int64) (generation.Source, error) {
	return logview.At(ctx, p.store, p.id.Shards, at)
}
