package encoders

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/safetensors"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Meta is what Save notes beside the encoder.
type Meta struct {
	Vectorizer train.Vectorizer
	Projection train.Projection
	Seed       uint64
	// Space is the generation whose space of embeddings the encoder keeps, 0 for none.
	Space int64
	// Metrics, if not nil, becomes "metrics" in config.json.
	Metrics any
	// Tensors are stored beside it: the matcher's (xmc.Matcher.Tensors), if there is one.
	Tensors []safetensors.Tensor
}

// Save writes e under prefix. It overwrites; a reader never sees half of it,
// since the configuration that names the model's checksum comes last.
func Save(ctx context.Context, store sink.Store, prefix string, e train.Encoder, m Meta) (Config, error) {
	c := Config{
		Magic: magic, Version: version, Kind: e.Kind(), Dim: e.Dim(), Features: m.Vectorizer.Dim(), Seed: m.Seed,
		Space: m.Space,
	}
	tensors, err := tensorsOf(e)
	if err != nil {
		return c, err
	}
	tensors = append(tensors, m.Tensors...)
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
	if b := transformer(e); b != nil {
		if c.BERT, err = saveBERT(ctx, store, prefix, b); err != nil {
			return c, err
		}
	}
	c.Version = c.versionOf()
	config, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return c, fmt.Errorf("encoder: %w", err)
	}
	config = append(config, '\n')
	return c, store.Put(ctx, prefix+"/"+configName, bytes.NewReader(config), int64(len(config)))
}

// transformer returns the transformer of an encoder, nil for none.
func transformer(e train.Encoder) *bert.Encoder {
	if h, ok := e.(*hybrid.Encoder); ok {
		e = h.Views().Model
	}
	b, _ := e.(*bert.Encoder)
	return b
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
