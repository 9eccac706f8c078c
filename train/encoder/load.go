package encoder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/bert"
	"giantstream/train/linear"
	"giantstream/train/lsa"
	"giantstream/train/safetensors"
	"giantstream/train/wide"
	"giantstream/train/xmc"
)

// readAhead is how much of a model is asked for at a time: on S3, each read is
// a request.
const readAhead = 4 << 20

// maxLevels bounds the matcher's levels; a tree of 2⁶⁴ leaves has fewer.
const maxLevels = 64

// Load reads the encoder under prefix and joins it to the vectorizer and the
// projection of its generation. It returns sink.ErrNotFound where there is no
// finished encoder.
func Load(ctx context.Context, store sink.Store, prefix string, v train.Vectorizer, p train.Projection) (train.Encoder, Config, error) {
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
		e, err = loadBERT(ctx, store, prefix, c.BERT)
		if _, beside := a.Shape("features"); err == nil && beside {
			e, err = addTable(e, c, a, v)
		}
	} else {
		e, err = build(c, a, v, p)
	}
	if err != nil {
		return nil, c, err
	}
	return e, c, nil
}

// LoadMatcher reads the matcher that was stored with the encoder under
// prefix, nil if there was none. Its problem has no targets.
func LoadMatcher(ctx context.Context, store sink.Store, prefix string) (*xmc.Matcher, error) {
	c, file, err := open(ctx, store, prefix)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	a, err := safetensors.Open(file, file.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var levels []xmc.Level
	var weights, bias [][]float32
	for t := range maxLevels {
		shape, ok := a.Shape(fmt.Sprintf("head.%d", t))
		if !ok || len(shape) != 2 {
			break
		}
		l := xmc.Level{Clusters: shape[0]}
		w, err := a.Float32(fmt.Sprintf("head.%d", t), l.Clusters, c.Dim)
		if name := fmt.Sprintf("bias.%d", t); err == nil && slices.Contains(a.Names(), name) {
			var b []float32
			b, err = a.Float32(name, l.Clusters)
			bias = append(bias, b)
		}
		if err == nil && t > 0 {
			l.Parent, err = a.Int32(fmt.Sprintf("parent.%d", t), l.Clusters)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		levels, weights = append(levels, l), append(weights, w)
	}
	if levels == nil {
		return nil, nil
	}
	problem, err := xmc.FromLevels(levels)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if bias != nil && len(bias) != len(weights) {
		return nil, fmt.Errorf("%w: %d levels of heads, %d of biases", ErrCorrupt, len(weights), len(bias))
	}
	return &xmc.Matcher{Problem: problem, Dim: c.Dim, Weights: weights, Bias: bias}, nil
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
	if _, err := io.Copy(sum, bufio.NewReaderSize(io.NewSectionReader(object, 0, object.Size()), readAhead)); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if got := (File{object.Size(), sum.Sum32()}); got != f {
		return fmt.Errorf("%w: %s is %d bytes with checksum %08x, %s says %d and %08x", ErrCorrupt,
			name, got.Bytes, got.CRC32C, configName, f.Bytes, f.CRC32C)
	}
	return nil
}

func build(c Config, a *safetensors.Archive, v train.Vectorizer, p train.Projection) (train.Encoder, error) {
	if p == nil && c.Kind != bag.Kind {
		return nil, fmt.Errorf("%w: a %q needs its projection", ErrMismatch, c.Kind)
	}
	switch c.Kind {
	case lsa.Kind:
		return checked(lsa.New(v, p, c.Dim))
	case linear.Kind:
		w, err := a.Float32("weights", c.Rank, c.Dim)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return checked(linear.New(v, p, w, c.Dim))
	case bag.Kind:
		m, err := loadTable(c, a)
		if err != nil {
			return nil, err
		}
		return checked(bag.NewEncoder(v, m))
	}
	return nil, fmt.Errorf("%w: kind %q", ErrUnknown, c.Kind)
}

// loadTable reads the n-grams' vectors.
func loadTable(c Config, a *safetensors.Archive) (*bag.Model, error) {
	shape, _ := a.Shape("features")
	features, err := a.Int32("features", shape...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	vectors, err := a.Float32("vectors", len(features), c.Dim)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return checked(bag.NewModel(features, vectors, c.Features, c.Dim))
}

// addTable puts the n-grams' vectors beside an encoder.
func addTable(deep train.Encoder, c Config, a *safetensors.Archive, v train.Vectorizer) (train.Encoder, error) {
	m, err := loadTable(c, a)
	if err != nil {
		return nil, err
	}
	return checked(wide.New(deep, v, m))
}

// checked marks a constructor's refusal as corruption: the sizes were
// compared with the configuration before.
func checked[E any](e E, err error) (E, error) {
	if err != nil {
		var none E
		return none, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return e, nil
}
