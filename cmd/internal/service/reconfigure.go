package service

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"giantstream/cmd/internal/endpoint"
	"giantstream/config"
	"giantstream/ingest/feed"
	"giantstream/stream/shard"
)

// settings are the configuration in force. A change replaces it as a whole: whoever uses several fields together
// takes them from one get.
type settings struct {
	now      atomic.Pointer[config.Config]
	changing sync.Mutex
}

func (s *settings) get() *config.Config { return s.now.Load() }

// window returns the bounds of windows that are in force.
func (s *settings) window() shard.Window {
	w := s.get().Window
	return shard.Window{Changes: w.Changes, Bytes: int64(w.Bytes), Time: w.Time}
}

// bounds returns the bounds of records that are in force.
func (s *settings) bounds() feed.Bounds {
	in := s.get().Ingest
	return feed.Bounds{TextBytes: int(in.Limits.TextBytes), EdgesPerRecord: in.Limits.EdgesPerRecord,
		MaxFuture: in.MaxFuture}
}

// ErrNotReloadable: the process was started without a file that could be read again.
var ErrNotReloadable = errors.New("there is no configuration file to read again")

// Reload reads the configuration again and changes what it says. A configuration that is refused changes nothing,
// and the log has the reason.
func (s *Service) Reload(by string) error {
	err := ErrNotReloadable
	if s.reload != nil {
		var next *config.Config
		if next, err = s.reload(); err == nil {
			_, err = s.Reconfigure(next, by)
		}
	}
	s.metrics.reloaded.Set(1)
	if err != nil {
		s.metrics.reloaded.Set(0)
		s.log.Error("the configuration was not changed", "by", by, "error", err)
	}
	return err
}

// Reconfigure changes the fields that a running service can change (config.Live) to those of next: all, or on an
// error none. by says in the log who asked for it.
func (s *Service) Reconfigure(next *config.Config, by string) ([]config.Change, error) {
	if err := next.Validate(); err != nil {
		return nil, err
	}
	s.settings.changing.Lock()
	defer s.settings.changing.Unlock()
	changes, err := config.LiveChanges(s.settings.get(), next)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(changes, func(c config.Change) bool { return c.Path == logLevelField }) {
		var level slog.Level
		if err := level.UnmarshalText([]byte(next.Log.Level)); err != nil {
			return nil, err
		}
		if s.level == nil {
			return nil, &config.Error{Faults: []config.Fault{{Path: logLevelField,
				Message: "cannot change: the command line has set it, with --log-level"}}}
		}
		defer s.level.Set(level)
		s.level.Set(min(level, s.level.Level())) // the change itself is logged, if either level lets it
	}
	s.settings.now.Store(new(*next))
	for _, c := range changes {
		s.log.Info("configuration changed", "by", by, "field", c.Path, "from", c.From, "to", c.To)
	}
	return changes, nil
}

const logLevelField = "log.level"

// serveConfig answers GET /config with every setting in force, and PUT /config, whose body has the fields to change
// as a file would, with what has changed.
func (s *Service) serveConfig(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		answerJSON(w, http.StatusOK, s.settings.get().Fields())
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfigBody))
	if err != nil {
		answerJSON(w, http.StatusRequestEntityTooLarge, refusedConfig{Error: err.Error()})
		return
	}
	next, err := s.settings.get().With(data)
	if err != nil {
		answerJSON(w, http.StatusUnprocessableEntity, refusalOf(err))
		return
	}
	changes, err := s.Reconfigure(&next, "PUT /config from "+r.RemoteAddr)
	if err != nil {
		s.log.Warn("the configuration was not changed", "by", "PUT /config from "+r.RemoteAddr, "error", err)
		answerJSON(w, http.StatusConflict, refusalOf(err))
		return
	}
	answerJSON(w, http.StatusOK, changedConfig{changes})
}

// maxConfigBody bounds the body of PUT /config. A file of every field has 10 KiB.
const maxConfigBody = 256 << 10

// changedConfig is the answer to a change.
type changedConfig struct {
	Changes []config.Change `json:"changes"`
}

// refusedConfig is the answer to a change that was refused as a whole.
type refusedConfig struct {
	Error  string          `json:"error"`
	Faults []refusedChange `json:"faults,omitempty"`
}

type refusedChange struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func refusalOf(err error) refusedConfig {
	out := refusedConfig{Error: "nothing was changed"}
	faults, ok := errors.AsType[*config.Error](err)
	if !ok {
		out.Error += ": " + err.Error()
		return out
	}
	for _, f := range faults.Faults {
		out.Faults = append(out.Faults, refusedChange{f.Path, f.Message})
	}
	return out
}

func answerJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// private passes on requests that bear the token. Without a token it passes on those of this machine, if they name it
// as their host: a page of another site that a browser on this machine shows cannot.
func private(token string, next http.Handler) http.Handler {
	if token != "" {
		return endpoint.Authorized(token, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !onLoopback(r.RemoteAddr) || !onLoopback(r.Host) {
			http.Error(w, "without http.token, this is for requests from this machine to its own address alone",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onLoopback reports whether an address, with or without a port, is this machine's own.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
