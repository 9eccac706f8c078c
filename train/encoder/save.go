package encoder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

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

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Meta is what Save notes beside the encoder.
type Meta struct {
	Vectorizer train.Vectorizer
	Projection train.Projection
	Seed       uint64
	// Metrics, if not nil, becomes "metrics" in config.json.
	Metrics any
	// Matcher, if not nil, is stored beside it.
	Matcher *xmc.Matcher
}

// Save writes e under prefix. It overwrites; a reader never sees half of it,
// since the configuration that names the model's checksum comes last.
func Save(ctx context.Context, store sink.Store, prefix string, e train.Encoder, m Meta) (Config, error) {
	c := Config{
		Magic: magic, Version: version, Kind: e.Kind(), Dim: e.Dim(), Features: m.Vectorizer.Dim(), Seed: m.Seed,
	}
	tensors, err := tensorsOf(e)
	if err != nil {
		return c, err
	}
	tensors = append(tensors, matcherTensors(m.Matcher)...)
	file, err := safetensors.New(tensors, map[string]string{"kind": e.Kind()})
	if err != nil {
		return c, fmt.Errorf("encoder: %w", err)
	}
	if m.Projection != nil {
		c.Rank = m.Projection.Dim()
	}
	if m.Metrics != nil {
		if c.Metrics, err = json.Marshal(m.Metrics); err != nil {
			return c, fmt.Errorf("encoder: metrics: %w", err)
		}
	}
	if c.Model, err = put(ctx, store, prefix+"/"+modelName, file, file.Size()); err != nil {
		return c, err
	}
	deep := e
	if w, ok := e.(*wide.Encoder); ok {
		deep = w.Deep()
	}
	if b, ok := deep.(*bert.Encoder); ok {
		if c.BERT, err = saveBERT(ctx, store, prefix, b); err != nil {
			return c, err
		}
	}
	config, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return c, fmt.Errorf("encoder: %w", err)
	}
	config = append(config, '\n')
	return c, store.Put(ctx, prefix+"/"+configName, bytes.NewReader(config), int64(len(config)))
}

// put streams a file into the store.
func put(ctx context.Context, store sink.Store, key string, file io.WriterTo, size int64) (File, error) {
	r, w := io.Pipe()
	sum := crc32.New(castagnoli)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := file.WriteTo(io.MultiWriter(w, sum))
		w.CloseWithError(err)
	}()
	err := store.Put(ctx, key, r, size)
	// A store that stopped early must not leave the writer waiting.
	r.CloseWithError(io.ErrClosedPipe)
	<-ended
	return File{Bytes: size, CRC32C: sum.Sum32()}, err
}

// tensorsOf are the encoder's own tensors. Those of a BERT are in files of
// their own.
func tensorsOf(e train.Encoder) ([]safetensors.Tensor, error) {
	switch e := e.(type) {
	case *lsa.Encoder, *bert.Encoder:
		return nil, nil
	case *linear.Encoder:
		w := e.Weights()
		return []safetensors.Tensor{{Name: "weights", Shape: []int{len(w) / e.Dim(), e.Dim()}, Float32: w}}, nil
	case *bag.Encoder:
		return tableTensors(e.Model()), nil
	case *wide.Encoder:
		if _, ok := e.Deep().(*bert.Encoder); ok {
			return tableTensors(e.Table()), nil
		}
	}
	return nil, fmt.Errorf("%w: cannot save a %q", ErrUnknown, e.Kind())
}

func tableTensors(m *bag.Model) []safetensors.Tensor {
	f := m.Features()
	return []safetensors.Tensor{
		{Name: "features", Shape: []int{len(f)}, Int32: f},
		{Name: "vectors", Shape: []int{len(f), m.Dim()}, Float32: m.Vectors()},
	}
}

func matcherTensors(m *xmc.Matcher) []safetensors.Tensor {
	if m == nil {
		return nil
	}
	var out []safetensors.Tensor
	for t, l := range m.Problem.Levels {
		out = append(out, safetensors.Tensor{
			Name: fmt.Sprintf("head.%d", t), Shape: []int{l.Clusters, m.Dim}, Float32: m.Weights[t],
		})
		if m.Bias != nil {
			out = append(out, safetensors.Tensor{
				Name: fmt.Sprintf("bias.%d", t), Shape: []int{l.Clusters}, Float32: m.Bias[t],
			})
		}
		if t > 0 {
			out = append(out, safetensors.Tensor{
				Name: fmt.Sprintf("parent.%d", t), Shape: []int{l.Clusters}, Int32: l.Parent,
			})
		}
	}
	return out
}
