package plan

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"giantstream/train/generation/build/stages"
)

//go:embed rates
var shipped embed.FS

// Shipped returns the rates that the program has for an encoder. They are of a machine of ours.
func Shipped(encoder string) (Calibration, error) {
	files, err := shipped.ReadDir("rates")
	if err != nil {
		return Calibration{}, err
	}
	var known []string
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".json")
		if name != encoder {
			known = append(known, name)
			continue
		}
		data, err := shipped.ReadFile(path.Join("rates", f.Name()))
		if err != nil {
			return Calibration{}, err
		}
		return read("the shipped rates of "+encoder, data)
	}
	return Calibration{}, fmt.Errorf("no rates of the encoder %q come with this program, but of %s; "+
		"measure them with 'giantstream plan calibrate --encoder %[1]s', and give their file by --rates", encoder,
		strings.Join(known, " and "))
}

// Unplanned are stages that a plan has no rates of, by what a graph has them for.
var Unplanned = []struct {
	For    string
	Stages []string
}{
	{"orders", []string{stages.Orders, stages.GoesWith, stages.Behaviour}},
	{"kinds and weights of links", []string{stages.Relations}},
	{"vectors of your own", []string{stages.Vectors}},
}
