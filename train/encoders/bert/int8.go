package bert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"giantstream/train/encoders/bert/compute"
)

// Precision is how the products of an encoder are computed.
type Precision string

// The precisions.
const (
	Float32 Precision = "float32"
	// Int8 multiplies in integers of eight bits: compute.Int8.
	Int8 Precision = "int8"
)

// Precisions returns the names of the precisions.
func Precisions() []string { return []string{string(Float32), string(Int8)} }

// Validate reports a precision that there is none of; "" is Float32.
func (p Precision) Validate() error {
	if p != "" && !slices.Contains(Precisions(), string(p)) {
		return fmt.Errorf("precision %q must be one of: %s", p, strings.Join(Precisions(), ", "))
	}
	return nil
}

// SetPrecision has the encoder multiply in p from now on. For Int8 it quantizes the weights as they are
// now: a tuner that goes on does not change them. The encoder must not be in use.
func (e *Encoder) SetPrecision(p Precision) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("bert: %w", err)
	}
	if e.trained == nil {
		return errors.New("bert: an encoder that was opened in int8 stays in int8; open it again")
	}
	if p != Int8 {
		e.model, e.options.Precision = e.trained, Float32
		return nil
	}
	q, err := e.trained.quantized(e.tokens(sample, compute.Batch{}))
	if err != nil {
		return err
	}
	e.model, e.options.Precision = q, Int8
	return nil
}

// quantized returns the model with the products of its layers in eight bits. The pooler, one product a
// text, stays in float32.
func (m *Model) quantized(sample compute.Batch) (*Model, error) {
	q, ok := m.backend.(compute.Quantizer)
	if !ok {
		return nil, errors.New("bert: the backend has no products in eight bits; use the precision float32")
	}
	taken, err := m.taken(sample)
	if err != nil {
		return nil, err
	}
	be := q.Int8()
	out := &Model{config: m.config, backend: be, weights: m.weights}
	out.layers = make([]layer, len(m.layers))
	for i, l := range m.layers {
		for _, p := range []**compute.Linear{&l.qkv, &l.attend, &l.widen, &l.narrow} {
			// What attention gives is the least uneven, and its rounding the smallest part of the error
			// (docs/measurements/2026-11-23.md).
			fine := p != &l.attend
			if *p, err = be.Quantize(*p, taken[*p], fine); err != nil {
				return nil, fmt.Errorf("bert: layer %d: %w", i, err)
			}
		}
		out.layers[i] = l
	}
	return out, nil
}

// taken returns, for the Linear layers, the rows that they take.
func (m *Model) taken(sample compute.Batch) (map[*compute.Linear][]float32, error) {
	taken := map[*compute.Linear][]float32{}
	var failed error
	_, err := m.forward(m.NewWorkspace(sample.Rows(), sample.Texts()), sample,
		func(l *compute.Linear, x compute.Buffer) {
			taken[l] = make([]float32, sample.Rows()*l.In)
			if err := m.backend.Read(taken[l], x); err != nil {
				failed = fmt.Errorf("bert: %w", err)
			}
		})
	return taken, errors.Join(err, failed)
}

// sample are the texts that Quantize gets to know the rows of. They only show which numbers of a hidden state
// are large in this model and what they are on average, which is nearly the same for all texts. So they need
// not be like the texts that are encoded, nor in their language.
var sample = []string{
	"Stainless steel screws, 3/8 inch, box of 100, for wood and metal. Rust resistant; fits most power drills.",
	"library for reading and writing image files",
	"We study the convergence of gradient methods on non-convex problems and prove a bound of order 1/sqrt(n).",
	"Heavy duty shipping labels for laser and ink jet printers, 8-1/2\" x 11\", white, 500 sheets per pack",
	"The river rose overnight, and by the morning two bridges were closed.",
	"How do I reset the password of my account? The link in the e-mail does not work.",
	"Python bindings for the XML parser. This package contains the development headers and documentation.",
	"A randomized controlled trial of 1,204 patients found no difference in mortality between the two groups.",
	"wireless mouse",
	"Berlin, Paris and Tokyo are the capitals of Germany, France and Japan.",
	"She sold the house in 1987 and moved to the coast with her two daughters, where she opened a small bakery.",
	"Simmer the onions in butter for ten minutes, then add garlic, thyme, a bay leaf and half a litre of stock.",
	"GPL licensed command line tool that compares directories and prints what differs between them",
	"The court held that the contract was void because neither party had signed it before the deadline.",
	"error: cannot open shared object file: No such file or directory (code 127)",
	"Shares fell 3.4 % after the company cut its forecast for the fourth quarter, citing weak demand in Asia.",
}
