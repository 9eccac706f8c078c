package bert

import (
	"errors"
	"fmt"
	"io/fs"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/safetensors"
)

// Load reads the network of a model directory into the backend's memory.
func Load(dir fs.FS, b compute.Backend) (*Model, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	file, err := safetensors.OpenModel(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bert: the weights must be in safetensors, as save_pretrained writes them "+
			"(pytorch_model.bin and ONNX are not read): %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l := &loader{file: file, backend: b}
	if _, ok := file.Shape("bert." + wordsName + ".weight"); ok {
		l.prefix = "bert."
	}
	m := l.model(c)
	if l.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, l.err)
	}
	return m, nil
}

const (
	wordsName  = "embeddings.word_embeddings"
	poolerName = "pooler.dense"
)

// layerNames are what the parts of a layer are called in the file.
type layerNames struct {
	qkv                               [3]string
	attend, norm, widen, narrow, last string
}

func namesOfLayer(i int) layerNames {
	name := fmt.Sprintf("encoder.layer.%d.", i)
	self := name + "attention.self."
	return layerNames{
		qkv:    [3]string{self + "query", self + "key", self + "value"},
		attend: name + "attention.output.dense", norm: name + "attention.output.LayerNorm",
		widen: name + "intermediate.dense", narrow: name + "output.dense", last: name + "output.LayerNorm",
	}
}

// loader reads tensors until one fails.
type loader struct {
	file    *safetensors.Model
	backend compute.Backend
	prefix  string // "bert." where the file has heads for other tasks beside the encoder
	err     error
}

func (l *loader) model(c Config) *Model {
	h := c.HiddenSize
	m := &Model{config: c, backend: l.backend}
	m.embedding = compute.Embedding{
		Words:     l.upload(wordsName+".weight", c.VocabSize, h),
		Positions: l.upload("embeddings.position_embeddings.weight", c.MaxPositions, h),
		Types:     l.upload("embeddings.token_type_embeddings.weight", c.TypeVocabSize, h),
		Norm:      l.norm("embeddings.LayerNorm", c),
	}
	for i := 0; i < c.Layers && l.err == nil; i++ {
		names := namesOfLayer(i)
		m.layers = append(m.layers, layer{
			qkv:    l.linear(h, h, names.qkv[:]...),
			attend: l.linear(h, h, names.attend),
			norm:   l.norm(names.norm, c),
			widen:  l.linear(h, c.IntermediateSize, names.widen),
			narrow: l.linear(c.IntermediateSize, h, names.narrow),
			last:   l.norm(names.last, c),
		})
	}
	if _, ok := l.file.Shape(l.prefix + poolerName + ".weight"); ok {
		m.pooler = l.linear(h, h, poolerName)
	}
	return m
}

// read returns a tensor, nil after an error.
func (l *loader) read(name string, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	x, err := l.file.Float32(l.prefix+name, shape...)
	l.err = err
	return x
}

func (l *loader) upload(name string, shape ...int) compute.Buffer {
	return l.backend.Upload(l.read(name, shape...))
}

// norm reads a layer normalization; checkpoints converted from TensorFlow
// call its tensors gamma and beta.
func (l *loader) norm(name string, c Config) compute.Norm {
	gain, bias := name+".weight", name+".bias"
	if _, ok := l.file.Shape(l.prefix + name + ".gamma"); ok {
		gain, bias = name+".gamma", name+".beta"
	}
	return compute.Norm{
		Width: c.HiddenSize, Gain: l.upload(gain, c.HiddenSize), Bias: l.upload(bias, c.HiddenSize),
		Epsilon: c.LayerNormEpsilon,
	}
}

// linear reads layers of the same input, stored out × in each, and puts their
// outputs side by side.
func (l *loader) linear(in, out int, names ...string) *compute.Linear {
	all := out * len(names)
	var weight, bias []float32
	for n, name := range names {
		w := l.read(name+".weight", out, in)
		b := l.read(name+".bias", out)
		if l.err != nil {
			return nil
		}
		if weight == nil { // sizes now proved by the file
			weight = make([]float32, in*all)
		}
		bias = append(bias, b...)
		for j := range out {
			for i, v := range w[j*in : (j+1)*in] {
				weight[i*all+n*out+j] = v
			}
		}
	}
	return &compute.Linear{In: in, Out: all, Weight: l.backend.Upload(weight), Bias: l.backend.Upload(bias)}
}
