package bert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Errors that callers test with errors.Is.
var (
	// ErrUnsupported: the directory holds a model that this package does not
	// implement.
	ErrUnsupported = errors.New("unsupported model")
	// ErrInvalid: the directory's files do not make a whole model.
	ErrInvalid = errors.New("invalid model")
)

const (
	configName = "config.json"
	maxConfig  = 1 << 20
)

// Config holds the fields of a model's config.json that this package uses, under their names in the
// file.
type Config struct {
	ModelType        string  `json:"model_type"`
	VocabSize        int     `json:"vocab_size"`
	HiddenSize       int     `json:"hidden_size"`
	Layers           int     `json:"num_hidden_layers"`
	Heads            int     `json:"num_attention_heads"`
	IntermediateSize int     `json:"intermediate_size"`
	MaxPositions     int     `json:"max_position_embeddings"`
	TypeVocabSize    int     `json:"type_vocab_size"`
	LayerNormEpsilon float64 `json:"layer_norm_eps"`
	Activation       string  `json:"hidden_act"`
	// PositionType is "absolute" or, in older files, missing.
	PositionType   string          `json:"position_embedding_type"`
	Decoder        bool            `json:"is_decoder"`
	CrossAttention bool            `json:"add_cross_attention"`
	Quantization   json.RawMessage `json:"quantization_config"`
}

// ParseConfig reads config.json and refuses what is not implemented. Missing fields have the values
// of BERT-base, as in the reference.
func ParseConfig(data []byte) (Config, error) {
	c := Config{
		VocabSize: 30522, HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072,
		MaxPositions: 512, TypeVocabSize: 2, LayerNormEpsilon: 1e-12, Activation: "gelu", PositionType: "absolute",
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrInvalid, configName, err)
	}
	return c, c.check()
}

func (c Config) check() error {
	unsupported := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: "+format, append([]any{ErrUnsupported, configName}, args...)...)
	}
	switch {
	case c.ModelType != "bert":
		return unsupported(`model_type is %q, only "bert" is implemented`, c.ModelType)
	case c.PositionType != "absolute":
		return unsupported(`position_embedding_type is %q, only "absolute" is implemented`, c.PositionType)
	case c.Activation != "gelu":
		return unsupported(`hidden_act is %q, only "gelu" is implemented`, c.Activation)
	case c.Decoder || c.CrossAttention:
		return unsupported("the model is a decoder; an encoder is needed")
	case len(c.Quantization) > 0 && string(c.Quantization) != "null":
		return unsupported("the weights are quantized; use the F32, F16 or BF16 model")
	}
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"vocab_size", c.VocabSize, 1 << 24},
		{"hidden_size", c.HiddenSize, 1 << 14},
		{"num_hidden_layers", c.Layers, 1 << 10},
		{"num_attention_heads", c.Heads, 1 << 10},
		{"intermediate_size", c.IntermediateSize, 1 << 16},
		{"max_position_embeddings", c.MaxPositions, 1 << 16},
		{"type_vocab_size", c.TypeVocabSize, 1 << 10},
	} {
		if f.value < 1 || f.value > f.most {
			return fmt.Errorf("%w: %s: %s is %d, it must be 1 to %d", ErrInvalid, configName, f.name, f.value, f.most)
		}
	}
	if c.HiddenSize%c.Heads != 0 {
		return fmt.Errorf("%w: %s: hidden_size %d is not a multiple of num_attention_heads %d", ErrInvalid,
			configName, c.HiddenSize, c.Heads)
	}
	if !(c.LayerNormEpsilon > 0 && c.LayerNormEpsilon < 1) {
		return fmt.Errorf("%w: %s: layer_norm_eps is %v, it must be between 0 and 1", ErrInvalid, configName,
			c.LayerNormEpsilon)
	}
	return nil
}

func readConfig(dir fs.FS) (Config, error) {
	f, err := dir.Open(configName)
	if err != nil {
		return Config{}, fmt.Errorf("bert: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return Config{}, fmt.Errorf("bert: read %s: %w", configName, err)
	}
	if len(data) > maxConfig {
		return Config{}, fmt.Errorf("%w: %s has more than %d bytes", ErrInvalid, configName, maxConfig)
	}
	return ParseConfig(data)
}
