package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Rate is what a unit of a stage's driver costs.
type Rate struct {
	CoreSeconds  float64 `json:"core_seconds"`
	ReadBytes    float64 `json:"read_bytes"`
	WrittenBytes float64 `json:"written_bytes"`
	// ModelBytes are those of models. Each machine reads them once, however large the graph is.
	ModelBytes float64 `json:"model_bytes,omitempty"`
	// Parallel is the share of a task's processor time that runs on all cores.
	Parallel float64 `json:"parallel"`
}

// Rates are the rates of all stages, by name.
type Rates map[string]Rate

// Calibration is a file of rates, with where they were measured.
type Calibration struct {
	Machine string    `json:"machine"`
	When    time.Time `json:"when"`
	Nodes   int64     `json:"nodes"`
	Edges   int64     `json:"edges"`
	Text    int64     `json:"text_bytes"`
	Rates   Rates     `json:"rates"`
}

// Load reads a calibration.
func Load(path string) (c Calibration, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: not what 'giantstream plan calibrate' writes: %w", path, err)
	}
	if len(c.Rates) == 0 {
		return c, fmt.Errorf("%s has no rates: write it with 'giantstream plan calibrate'", path)
	}
	for name, r := range c.Rates {
		if !(r.CoreSeconds >= 0 && r.ReadBytes >= 0 && r.WrittenBytes >= 0 && r.ModelBytes >= 0 &&
			r.Parallel >= 0 && r.Parallel <= 1) {
			return c, fmt.Errorf("%s: the rate of %s is not one: %+v", path, name, r)
		}
	}
	return c, nil
}

// Save writes a calibration.
func (c Calibration) Save(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // rates are no secret
}
