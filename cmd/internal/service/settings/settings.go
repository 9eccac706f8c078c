// Package settings holds the configuration in force in a running process, and changes the fields of it that can change
// while it runs (config.Live).
package settings

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"giantstream/config"

	"github.com/prometheus/client_golang/prometheus"
)

// Settings are the configuration in force. A change replaces it as a whole: a caller that uses several fields together
// takes them from one Get.
type Settings struct {
	// Level is that of Log. nil: it does not change.
	Level *slog.LevelVar
	// Read reads the configuration again. nil: it comes from no file.
	Read func() (*config.Config, error)
	Log  *slog.Logger

	now      atomic.Pointer[config.Config]
	changing sync.Mutex
	reloaded prometheus.Gauge
}

// New returns settings that are cfg, and whose fate metrics tell.
func New(cfg *config.Config, metrics prometheus.Registerer) *Settings {
	s := &Settings{Log: slog.New(slog.DiscardHandler), reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "giantstream_config_last_reload_successful",
		Help: "1 if the configuration took effect when it was last read, at the start or again; else 0."})}
	metrics.MustRegister(s.reloaded)
	s.reloaded.Set(1)
	s.now.Store(cfg)
	return s
}

// Get returns the configuration in force.
func (s *Settings) Get() *config.Config { return s.now.Load() }

// ErrNotReloadable: the process was started without a file that could be read again.
var ErrNotReloadable = errors.New("there is no configuration file to read again")

// Reload reads the configuration again and changes what it says. A configuration that is refused changes nothing,
// and the log has the reason.
func (s *Settings) Reload(by string) error {
	err := ErrNotReloadable
	if s.Read != nil {
		var next *config.Config
		if next, err = s.Read(); err == nil {
			_, err = s.Change(next, by)
		}
	}
	s.reloaded.Set(1)
	if err != nil {
		s.reloaded.Set(0)
		s.Log.Error("the configuration was not changed", "by", by, "error", err)
	}
	return err
}

// Change changes the fields that a running service can change (config.Live) to those of next: all, or on an
// error none. by says in the log who asked for it.
func (s *Settings) Change(next *config.Config, by string) ([]config.Change, error) {
	if err := next.Validate(); err != nil {
		return nil, err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	changes, err := config.LiveChanges(s.Get(), next)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(changes, func(c config.Change) bool { return c.Path == logLevelField }) {
		var level slog.Level
		if err := level.UnmarshalText([]byte(next.Log.Level)); err != nil {
			return nil, err
		}
		if s.Level == nil {
			return nil, &config.Error{Faults: []config.Fault{{Path: logLevelField,
				Message: "cannot change: the command line has set it, with --log-level"}}}
		}
		defer s.Level.Set(level)
		s.Level.Set(min(level, s.Level.Level())) // the change itself is logged, if either level lets it
	}
	s.now.Store(new(*next))
	for _, c := range changes {
		s.Log.Info("configuration changed", "by", by, "field", c.Path, "from", c.From, "to", c.To)
	}
	return changes, nil
}

const logLevelField = "log.level"
