package encoders

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/safetensors"
)

// Load reads the encoder under prefix and joins it to the vectorizer and the
// projection of its generation. A transformer runs on the device, nil for the CPU. It returns
// sink.ErrNotFound where there is no finished encoder.
func Load(ctx context.Context, store sink.Store, prefix string, v train.Vectorizer,
	p train.Projection, device compute.Backend) (train.Encoder, Config, error) {
	c, file, err := open(ctx, store, prefix)
	if err != nil {
		return nil, c, err
	}
	defer file.Close()
	if c.Features != v.Dim() || (p != nil && c.Rank != p.Dim()) {
		return nil, c, fmt.Errorf("%w: it was trained on %d features and rank %d", ErrMismatch, c.Features, c.Rank)
	}
	a, err := safetensors.Open(file, file.Size())
	if err != nil {
		return nil, c, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var e train.Encoder
	if c.Kind == bert.Kind {
		e, err = openBERT(ctx, store, prefix, c, a, v, p, device)
	} else {
		e, err = build(c, a, v, p)
	}
	if err != nil {
		return nil, c, err
	}
	return e, c, nil
}

// open reads the configuration and opens the model after checking its size
// and checksum.
func open(ctx context.Context, store sink.Store, prefix string) (Config, sink.Object, error) {
	f, err := store.Open(ctx, prefix+"/"+configName)
	if err != nil {
		return Config{}, nil, err
	}
	defer f.Close()
	if f.Size() > maxConfig {
		return Config{}, nil, fmt.Errorf("%w: %s has %d bytes", ErrCorrupt, configName, f.Size())
	}
	data := make([]byte, f.Size())
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return Config{}, nil, fmt.Errorf("encoder: read %s/%s: %w", prefix, configName, err)
	}
	c, err := parseConfig(data)
	if err != nil {
		return c, nil, err
	}
	model, err := openVerified(ctx, store, prefix, modelName, c.Model)
	return c, model, err
}

// openVerified opens an object below prefix, which must be what the
// configuration says of it.
func openVerified(ctx context.Context, store sink.Store, prefix, name string, want File) (sink.Object, error) {
	object, err := store.Open(ctx, prefix+"/"+name)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s is missing", ErrCorrupt, name)
	}
	if err != nil {
		return nil, err
	}
	if err := want.verify(object, name); err != nil {
		return nil, errors.Join(fmt.Errorf("encoder %s: %w", prefix, err), object.Close())
	}
	return object, nil
}

// verify reads an object through.
func (f File) verify(object sink.Object, name string) error {
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, sink.Sequential(object)); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if got := (File{object.Size(), sum.Sum32()}); got != f {
		return fmt.Errorf("%w: %s is %d bytes with checksum %08x, %s says %d and %08x", ErrCorrupt,
			name, got.Bytes, got.CRC32C, configName, f.Bytes, f.CRC32C)
	}
	return nil
}

// openBERT opens a BERT with its rotation and with the n-grams and the text beside it, as far as it has them.
func openBERT(ctx context.Context, store sink.Store, prefix string, c Config, a *safetensors.Archive,
	v train.Vectorizer, p train.Projection, device compute.Backend) (train.Encoder, error) {
	_, ngrams := a.Shape("features")
	join, joined := a.Shape(joinName)
	solution, _ := a.Shape("weights")
	if ngrams && (!joined || len(join) != 2 || len(solution) != 2 || join[0] == c.Dim+2*solution[1]) {
		return nil, fmt.Errorf("%w: an earlier version added n-grams to the model's embedding; "+
			"use that version, or a new store", ErrUnknown)
	}
	model, err := loadBERT(ctx, store, prefix, c.BERT, device)
	if err != nil {
		return nil, err
	}
	if _, ok := a.Shape(rotationName); ok {
		rotation, err := a.Float32(rotationName, model.Dim(), model.Dim())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		model.Rotate(rotation)
	}
	if !joined {
		return model, nil
	}
	if p == nil {
		return nil, fmt.Errorf("%w: a %q joined to the text needs its projection", ErrMismatch, c.Kind)
	}
	return loadHybrid(c, a, v, p, model)
}
