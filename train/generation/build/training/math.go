package training

import (
	"context"
	"slices"
	"strings"

	"giantstream/sink"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/generation"
	"giantstream/train/generation/build/work"
)

// GPUMath is how the device multiplies, which figures depend on: "" for float32, and where no transformer runs.
func GPUMath(t *work.Task) compute.Math {
	m := compute.MathOf(devices.OrCPU(t.Device))
	if m == compute.Float32 || t.Doc.Settings.Encoder != bert.Kind {
		return ""
	}
	return m
}

// storeMath leaves an object that says how the device multiplies, for a training that is resumed in another mode.
func storeMath(ctx context.Context, t *work.Task) error {
	m := GPUMath(t)
	if m == "" {
		return nil
	}
	return sink.PutBytes(ctx, t.Store, work.Folder(t.Task)+"math/"+string(m), []byte(m))
}

// mathSoFar returns the modes in which devices have multiplied for this training.
func mathSoFar(ctx context.Context, t *work.Task) (modes []compute.Math, err error) {
	prefix := work.Folder(t.Task) + "math/"
	for info, err := range t.Store.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		modes = append(modes, compute.Math(strings.TrimPrefix(info.Key, prefix)))
	}
	return modes, nil
}

// AddMath adds modes of GPUs to the document, each once.
func AddMath(doc *generation.Doc, modes ...compute.Math) {
	for _, m := range modes {
		if m != "" && !slices.Contains(doc.GPUMath, m) {
			doc.GPUMath = append(slices.Clone(doc.GPUMath), m)
		}
	}
}
