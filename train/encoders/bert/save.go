package bert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/safetensors"
)

// File is a file of a model directory, to be written.
type File struct {
	Name string
	Size int64
	io.WriterTo
}

// Files returns the model directory of the encoder's current weights:
// config.json, model.safetensors, vocab.txt and tokenizer_config.json, as Open
// and Hugging Face's from_pretrained read them. The weights are copied, so the
// files stay the same while training continues.
func (e *Encoder) Files() ([]File, error) {
	m := e.model
	tensors, err := m.tensors(m.backend, m.config)
	runtime.KeepAlive(e) // whose end frees the weights
	if err != nil {
		return nil, err
	}
	// Without "format", from_pretrained refuses the file.
	weights, err := safetensors.New(tensors, map[string]string{"format": "pt"})
	if err != nil {
		return nil, err
	}
	c := m.config
	config, err := file(configName, map[string]any{
		"architectures": []string{"BertModel"}, "model_type": c.ModelType, "torch_dtype": "float32",
		"vocab_size": c.VocabSize, "hidden_size": c.HiddenSize, "num_hidden_layers": c.Layers,
		"num_attention_heads": c.Heads, "intermediate_size": c.IntermediateSize,
		"max_position_embeddings": c.MaxPositions, "type_vocab_size": c.TypeVocabSize,
		"layer_norm_eps": c.LayerNormEpsilon, "hidden_act": c.Activation,
		"position_embedding_type": c.PositionType,
	})
	if err != nil {
		return nil, err
	}
	files := []File{config, {Name: weightsName, Size: weights.Size(), WriterTo: weights}}
	tokenizer, err := e.tokenizer.Files()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(tokenizer)) {
		data := content(tokenizer[name])
		files = append(files, File{Name: name, Size: int64(len(data)), WriterTo: data})
	}
	return files, nil
}

const weightsName = "model.safetensors"

// file makes a JSON file.
func file(name string, value any) (File, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("bert: %s: %w", name, err)
	}
	data = append(data, '\n')
	return File{Name: name, Size: int64(len(data)), WriterTo: content(data)}, nil
}

// content is a file's bytes. Unlike a bytes.Reader, it can be written more than once.
type content []byte

func (c content) WriteTo(w io.Writer) (int64, error) { return bytes.NewReader(c).WriteTo(w) }

// Save writes Files into a directory, which it makes if need be.
func (e *Encoder) Save(dir string) error {
	files, err := e.Files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("bert: save: %w", err)
	}
	for _, f := range files {
		if err := f.save(filepath.Join(dir, f.Name)); err != nil {
			return fmt.Errorf("bert: save: %w", err)
		}
	}
	return nil
}

func (f File) save(path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.WriteTo(out); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// tensors are w under the names and in the shapes of a model directory: the
// inverse of loader.model.
func (w *weights) tensors(be compute.Backend, c Config) ([]safetensors.Tensor, error) {
	s := &saver{backend: be}
	h := c.HiddenSize
	s.tensor(wordsName+".weight", w.embedding.Words, c.VocabSize, h)
	s.tensor("embeddings.position_embeddings.weight", w.embedding.Positions, c.MaxPositions, h)
	s.tensor("embeddings.token_type_embeddings.weight", w.embedding.Types, c.TypeVocabSize, h)
	s.norm("embeddings.LayerNorm", &w.embedding.Norm)
	for i := range w.layers {
		l, names := &w.layers[i], namesOfLayer(i)
		s.linear(l.qkv, names.qkv[:]...)
		s.linear(l.attend, names.attend)
		s.norm(names.norm, &l.norm)
		s.linear(l.widen, names.widen)
		s.linear(l.narrow, names.narrow)
		s.norm(names.last, &l.last)
	}
	if w.pooler != nil {
		s.linear(w.pooler, poolerName)
	}
	return s.tensors, s.err
}

// saver reads buffers until one fails.
type saver struct {
	backend compute.Backend
	tensors []safetensors.Tensor
	err     error
}

func (s *saver) read(b compute.Buffer) []float32 {
	x := make([]float32, b.Len())
	if err := read(s.backend, x, b); err != nil && s.err == nil {
		s.err = err
	}
	return x
}

func (s *saver) add(name string, x []float32, shape ...int) {
	s.tensors = append(s.tensors, safetensors.Tensor{Name: name, Shape: shape, Float32: x})
}

func (s *saver) tensor(name string, b compute.Buffer, shape ...int) { s.add(name, s.read(b), shape...) }

func (s *saver) norm(name string, n *compute.Norm) {
	s.tensor(name+".weight", n.Gain, n.Width)
	s.tensor(name+".bias", n.Bias, n.Width)
}

// linear writes the layers that stand side by side in l, out × in each.
func (s *saver) linear(l *compute.Linear, names ...string) {
	weight, bias := s.read(l.Weight), s.read(l.Bias)
	if s.err != nil {
		return
	}
	out := l.Out / len(names)
	for n, name := range names {
		w := make([]float32, l.In*out)
		for j := range out {
			for i := range l.In {
				w[j*l.In+i] = weight[i*l.Out+n*out+j]
			}
		}
		s.add(name+".weight", w, out, l.In)
		s.add(name+".bias", bias[n*out:(n+1)*out], out)
	}
}
