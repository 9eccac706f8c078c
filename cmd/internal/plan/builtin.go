package plan

import (
	_ "embed"
	"encoding/json"
)

//go:embed builtin.json
var builtin []byte

// BuiltIn are the rates of one machine, for those who have not calibrated.
func BuiltIn() Calibration {
	var c Calibration
	if err := json.Unmarshal(builtin, &c); err != nil {
		panic("cmd/internal/plan/builtin.json: " + err.Error()) // a test reads it
	}
	return c
}
