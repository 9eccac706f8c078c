package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"giantstream/train/generation/build/stages"
)

// Rates are what a stage costs: rates of the terms of its shape.
type Rates struct {
	CoreSeconds  Rate `json:"core_seconds"`
	ReadBytes    Rate `json:"read_bytes"`
	WrittenBytes Rate `json:"written_bytes"`
	// Shuffled is the share of the bytes read that a task of another partition wrote.
	Shuffled float64 `json:"shuffled"`
	// ModelBytes are those of models. Each machine reads them once, however large the graph is.
	ModelBytes float64 `json:"model_bytes,omitempty"`
	// Parallel is the share of a task's processor time that runs on all cores.
	Parallel float64 `json:"parallel"`
}

// Format is that of a file of rates.
const Format = 3

// Calibration is a file of rates, with where they were measured.
type Calibration struct {
	Format  int       `json:"format"`
	Machine string    `json:"machine"`
	When    time.Time `json:"when"`
	Graph   Graph     `json:"graph"`
	// Encoder, Dim and ProjectionDim are the settings that the rates hold for.
	Encoder       string           `json:"encoder"`
	Dim           int              `json:"dim"`
	ProjectionDim int              `json:"projection_dim"`
	Growth        Growth           `json:"growth"`
	Stages        map[string]Rates `json:"stages"`
}

// ErrRates: the rates are not of this program's stages.
var ErrRates = errors.New("write the rates again with this program: giantstream plan calibrate")

// Load reads a calibration.
func Load(path string) (Calibration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Calibration{}, err
	}
	return read(path, data)
}

func read(name string, data []byte) (c Calibration, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s is not what 'giantstream plan calibrate' writes: %w", name, err)
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Validate says whether the rates are those of all stages that there are, in the terms of their shapes.
func (c Calibration) Validate() error {
	if c.Format != Format {
		return fmt.Errorf("the rates have format %d, this program knows format %d; %w", c.Format, Format, ErrRates)
	}
	var missing, unknown []string
	for _, name := range slices.Sorted(maps.Keys(Shapes)) {
		if _, ok := c.Stages[name]; !ok {
			missing = append(missing, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Stages)) {
		s, known := Shapes[name]
		if !known {
			unknown = append(unknown, name)
			continue
		}
		if err := c.Stages[name].validate(s); err != nil {
			return fmt.Errorf("stage %s: %w; %w", name, err, ErrRates)
		}
	}
	switch {
	case missing != nil:
		return fmt.Errorf("there are no rates of the stages %s; %w", strings.Join(missing, ", "), ErrRates)
	case unknown != nil:
		return fmt.Errorf("there are rates of stages that no build has: %s; %w", strings.Join(unknown, ", "), ErrRates)
	case c.Dim < 1 || c.ProjectionDim < 1 || !inRange(c.Growth.Exponent, 0, 1) ||
		!inRange(c.Growth.Candidates, 0, math.MaxFloat64) || !inRange(c.Growth.Reach, 0, math.MaxFloat64):
		return fmt.Errorf("the dimensions and growth are none: %d, %d, %+v; %w", c.Dim, c.ProjectionDim, c.Growth,
			ErrRates)
	}
	return nil
}

func inRange(v, low, high float64) bool { return v >= low && v <= high }

func (r Rates) validate(s Shape) error {
	for _, of := range []struct {
		rate  Rate
		terms []term
	}{{r.CoreSeconds, s.CPU}, {r.ReadBytes, s.Read}, {r.WrittenBytes, s.Written}} {
		for t, each := range of.rate {
			if !slices.Contains(of.terms, t) {
				return fmt.Errorf("its cost does not depend on %q", t)
			}
			if !inRange(each, 0, math.MaxFloat64) {
				return fmt.Errorf("%g for each %s is no rate", each, t)
			}
		}
	}
	if len(r.CoreSeconds) == 0 || !inRange(r.Shuffled, 0, 1) || !inRange(r.Parallel, 0, 1) ||
		!inRange(r.ModelBytes, 0, math.MaxFloat64) {
		return fmt.Errorf("no rates: %+v", r)
	}
	return nil
}

// Save writes a calibration.
func (c Calibration) Save(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // rates are no secret
}

// modelBytes are what a machine reads of models. Those of dataset have the tree among them, which grows.
func (r Rates) modelBytes(stage string, nodes float64) float64 {
	if stage == stages.Dataset {
		return r.ModelBytes + treeBytes*nodes
	}
	return r.ModelBytes
}

const treeBytes = 4 // of a label in the stored tree
