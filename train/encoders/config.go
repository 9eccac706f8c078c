package encoders

import (
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/train/encoders/bert"
)

// Errors that callers test with errors.Is.
var (
	// ErrCorrupt: the objects are not a whole, undamaged encoder.
	ErrCorrupt = errors.New("encoder is corrupt")
	// ErrUnknown: the encoder is of a kind or version that this program does
	// not know.
	ErrUnknown = errors.New("encoder is of an unknown kind or version")
	// ErrMismatch: vectorizer or projection are not those of the training.
	ErrMismatch = errors.New("encoder does not belong to this vectorizer and projection")
)

const (
	magic = "giantstream-encoder"
	// version is what is written, int8Version what an encoder in int8 is marked with: programs that would
	// encode with it in float32, and so mix embeddings of both, refuse it.
	version     = 1
	int8Version = 2
	// maxConfig bounds config.json.
	maxConfig = 1 << 20

	configName = "config.json"
	modelName  = "model.safetensors"

	// rotationName is the tensor that orders the dimensions of a BERT.
	rotationName = "rotation"
)

// Config is config.json: what the encoder is and how it was trained.
type Config struct {
	Magic   string `json:"magic"`
	Version int    `json:"version"`
	// Kind is the encoder's Kind: "hybrid", "bag", "linear", "lsa" or "bert".
	Kind string `json:"kind"`
	Dim  int    `json:"dim"`
	// Features and Rank are the vectorizer's and the projection's dimensions.
	Features int `json:"features"`
	Rank     int `json:"rank"`
	// Seed is the seed of the training.
	Seed uint64 `json:"seed"`
	// Space is the generation that began the space that the embeddings were turned into, 0 if they are in a space of
	// their own.
	Space int64 `json:"space,omitempty"`
	// Metrics is what the training reported, for people.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	Model   File            `json:"model"`
	// BERT is the additional part of an encoder of the kind "bert".
	BERT *BERT `json:"bert,omitempty"`
}

// BERT is a BERT's part of the configuration.
type BERT struct {
	Pooling   string `json:"pooling"` // "mean" or "cls"
	MaxTokens int    `json:"max_tokens"`
	// Precision is bert.Int8, or "" for bert.Float32.
	Precision bert.Precision `json:"precision,omitempty"`
	// Files are the files of the model directory, bert/, by name.
	Files map[string]File `json:"files"`
}

// Size is the number of bytes of the encoder's objects, config.json not counted.
func (c Config) Size() int64 {
	n := c.Model.Bytes
	if c.BERT != nil {
		for _, f := range c.BERT.Files {
			n += f.Bytes
		}
	}
	return n
}

// File is an object's size and CRC-32C.
type File struct {
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

func parseConfig(data []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrCorrupt, configName, err)
	}
	if c.Magic != magic || (c.Version != version && c.Version != int8Version) {
		return c, fmt.Errorf("%w: %s says %q version %d, this program reads %q version %d and %d; "+
			"train again or use a matching program",
			ErrUnknown, configName, c.Magic, c.Version, magic, version, int8Version)
	}
	if c.Dim < 1 || c.Dim > 1<<20 || c.Features < 1 || c.Rank < 0 {
		return c, fmt.Errorf("%w: %s says dim %d, features %d, rank %d",
			ErrCorrupt, configName, c.Dim, c.Features, c.Rank)
	}
	if (c.Kind == bert.Kind) != (c.BERT != nil) {
		return c, fmt.Errorf("%w: %s of a %q, with what only a bert has or without", ErrCorrupt, configName, c.Kind)
	}
	if c.BERT != nil && c.BERT.Precision != "" && c.BERT.Precision != bert.Int8 {
		return c, fmt.Errorf("%w: %s has the precision %q", ErrUnknown, configName, c.BERT.Precision)
	}
	if c.Version != c.versionOf() {
		return c, fmt.Errorf("%w: %s of version %d has another version's precision", ErrUnknown, configName, c.Version)
	}
	return c, nil
}

// versionOf returns the version that the configuration is to have.
func (c Config) versionOf() int {
	if c.BERT != nil && c.BERT.Precision == bert.Int8 {
		return int8Version
	}
	return version
}
