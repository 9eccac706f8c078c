package command

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
	"giantstream/train/generation/study"
)

// Workplace is what every command works with: the configuration, its store, a log, and a place to
// show progress. Memory and cores are limited as the configuration says.
type Workplace struct {
	Config   *config.Config
	Store    sink.Store
	Log      *slog.Logger
	Progress *console.Progress
	Device   devices.Device // nil until OpenDevice
}

// OpenWorkplace opens the store of a configuration. level is the command's own log level, "" for the
// default.
func (a *App) OpenWorkplace(ctx context.Context, cfg *config.Config, level string) (*Workplace, error) {
	log, err := a.Logger(level, cfg.Log.Format)
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
	return &Workplace{Config: cfg, Store: store, Log: log, Progress: console.New(a.Err, log)}, nil
}

// OpenDevice opens what transformers run on, for a command that trains or encodes, until the function
// that it returns is called.
func (a *App) OpenDevice(w *Workplace) (closeDevice func(), err error) {
	w.Device, err = wiring.OpenDevice(w.Config, a.Drivers, w.Log)
	if errors.Is(err, devices.ErrNoDriver) {
		return nil, UsageError(err)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		if err := w.Device.Close(); err != nil {
			w.Log.Warn("the device was not given back; the end of this process does it", "error", err)
		}
	}, nil
}

// StartService starts the service on a workplace, for a command that sends all its input itself.
func (w *Workplace) StartService(ctx context.Context, roles service.Roles) (*service.Service, error) {
	return service.Start(ctx, service.Options{Config: w.Config, Store: w.Store, Log: w.Log, Roles: roles,
		Device: w.Device, Progress: w.Progress, Resent: true})
}

// StudyOptions returns the options of a study.
func (w *Workplace) StudyOptions() study.Options {
	return study.Options{Settings: wiring.SettingsOf(w.Config),
		Resources: wiring.ResourcesOf(w.Config, w.Device, w.Progress, w.Log)}
}

// Pipeline is the workplace of a pipeline that exists: its store has an identity, and Config is a configuration of it.
type Pipeline struct {
	*Workplace
	Identity commitlog.Identity
	// configured: a file names the settings, not --store alone.
	configured bool
}

// Open loads the configuration, puts the command's flags over it, and opens the pipeline that it
// names. A configuration of another pipeline, or with other settings of what the graph is, is refused.
func (a *App) Open(ctx context.Context, f *PipelineFlags, flags ...func(*config.Config)) (*Pipeline, error) {
	cfg, err := f.Load()
	if err != nil {
		return nil, err
	}
	for _, apply := range flags {
		apply(cfg)
		if err := CheckConfig(cfg); err != nil {
			return nil, err
		}
	}
	p, err := a.OpenStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p.configured = f.File != ""
	return p, p.Identity.Check(ctx, p.Store, wiring.IdentityOf(cfg))
}

// OpenDamaged is Open for the command that looks for damage: where the identity is missing or damaged, it is empty, and
// nothing is compared with it.
func (a *App) OpenDamaged(ctx context.Context, f *PipelineFlags) (*Pipeline, error) {
	cfg, err := f.Load()
	if err != nil {
		return nil, err
	}
	w, err := a.OpenWorkplace(ctx, cfg, "")
	if err != nil {
		return nil, err
	}
	p := &Pipeline{Workplace: w, configured: f.File != ""}
	p.Identity, err = commitlog.LoadIdentity(ctx, w.Store)
	if errors.Is(err, sink.ErrNotFound) || errors.Is(err, commitlog.ErrDamaged) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	return p, p.Identity.Check(ctx, p.Store, wiring.IdentityOf(cfg))
}

// OpenStore opens the pipeline at the store of a configuration, whatever else the configuration says.
func (a *App) OpenStore(ctx context.Context, cfg *config.Config) (*Pipeline, error) {
	// A command that looks creates no directory for a store whose name is misspelt.
	if dir, ok := wiring.StoreDir(cfg.Store); ok {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no store at %s; 'giantstream run' creates one", dir)
		}
	}
	w, err := a.OpenWorkplace(ctx, cfg, "")
	if err != nil {
		return nil, err
	}
	id, err := commitlog.LoadIdentity(ctx, w.Store)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%s holds no pipeline yet: 'giantstream run' creates one", w.Store.URL())
	}
	return &Pipeline{Workplace: w, Identity: id}, err
}

// KnowsMapping returns an error if nothing says how the pipeline reads its records: a store of an older release does
// not, and no file was given.
func (p *Pipeline) KnowsMapping() error {
	if p.configured || p.Identity.Settings != nil {
		return nil
	}
	return UsageError(fmt.Errorf("the store %s was made by an older release and does not say how records are read: "+
		"give the pipeline's configuration with -c FILE", p.Store.URL()))
}

// Source is the graph as of a cut, nil for everything committed. It is a build's source.
func (p *Pipeline) Source(ctx context.Context, at map[int]int64) (*logview.Cut, error) {
	return logview.OpenCut(ctx, p.Store, p.Identity.Shards, at)
}

// CloseService closes the service and keeps the first error.
func CloseService(s *service.Service, err error) error {
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return s.Explain(err)
}
