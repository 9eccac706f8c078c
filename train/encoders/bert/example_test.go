package bert_test

import (
	"fmt"
	"os"

	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
)

// A model directory becomes an encoder.
func ExampleOpen() {
	e, err := bert.Open(os.DirFS("testdata/tiny"), cpu.New(), bert.Options{Pooling: compute.Mean})
	if err != nil {
		fmt.Println(err)
		return
	}
	out := make([]float32, e.Dim())
	err = e.Encode([]string{"a box of steel screws"}, out)
	fmt.Println(e.Dim(), err)
	// Output: 32 <nil>
}

// A tuner takes one step along the gradient of a loss of the caller's.
func ExampleTuner() {
	dir := os.DirFS("testdata/tiny")
	tokenizer, err := wordpiece.Load(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := bert.Load(dir, cpu.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := bert.NewTuner(model, tokenizer, bert.TuneOptions{Pooling: compute.Mean})
	if err != nil {
		fmt.Println(err)
		return
	}
	z := make([]float32, t.Dim())
	err = t.Forward([]string{"a box of steel screws"}, nil, z) // the text's vector, not normalized
	if err == nil {
		err = t.Backward(z) // the gradient of ‖z‖²/2; adds to sums
	}
	if err == nil {
		_, err = t.Update(1e-3) // clip, AdamW, sums to zero
	}
	fmt.Println(err)
	// Output: <nil>
}
