package answering

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"giantstream/cmd/internal/endpoint"
	"giantstream/config"
)

// serveConfig answers GET /config with every setting in force, and PUT /config, whose body has the fields to change
// as a file would, with what has changed.
func (a *Answer) serveConfig(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		answerJSON(w, http.StatusOK, a.Settings.Get().Fields())
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfigBody))
	if err != nil {
		answerJSON(w, http.StatusRequestEntityTooLarge, refusedConfig{Error: err.Error()})
		return
	}
	next, err := a.Settings.Get().Overlay(data)
	if err != nil {
		answerJSON(w, http.StatusUnprocessableEntity, refusalOf(err))
		return
	}
	by := "PUT /config from " + r.RemoteAddr
	if name := endpoint.NameOf(r.Context()); name != "" {
		by += " by token " + name
	}
	changes, err := a.Settings.Change(&next, by)
	if err != nil {
		a.Log.Warn("the configuration was not changed", "by", by, "error", err)
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
