package wiring

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/stream/export"
	"giantstream/stream/verify"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/drift"
)

// Generations are those of a store, with transformers on a device, nil for the CPU. It implements the
// interfaces of export and verify.
type Generations struct {
	Store  sink.Store
	Device compute.Backend
}

// Ready implements export.Generations.
func (g Generations) Ready(ctx context.Context) iter.Seq2[export.Generation, error] {
	return func(yield func(export.Generation, error) bool) {
		numbers, err := generation.Numbers(ctx, g.Store)
		if err != nil {
			yield(export.Generation{}, err)
			return
		}
		for _, n := range slices.Backward(numbers) {
			doc, err := g.ready(ctx, n)
			if err != nil {
				yield(export.Generation{}, err)
				return
			}
			if doc != nil && !yield(exported(doc), nil) {
				return
			}
		}
	}
}

// ready returns a generation's document, nil if it is not ready.
func (g Generations) ready(ctx context.Context, n int64) (*generation.Doc, error) {
	doc, err := generation.Load(ctx, g.Store, n)
	if errors.Is(err, generation.ErrNone) || generation.IsDamage(err) {
		return nil, nil
	}
	if err != nil || doc.Status != generation.Ready {
		return nil, err
	}
	damage, err := generation.Damaged(ctx, g.Store, n)
	if damage != nil {
		return nil, err
	}
	return doc, err
}

// Load implements export.Generations.
func (g Generations) Load(ctx context.Context, number int64) (export.Generation, error) {
	doc, err := generation.Load(ctx, g.Store, number)
	if err != nil {
		return export.Generation{}, err
	}
	return exported(doc), nil
}

func exported(doc *generation.Doc) export.Generation {
	return export.Generation{Number: doc.Generation, Space: doc.SpaceOf(), Cut: doc.Cut,
		Type: doc.Settings.Stored.Type, FromNeighbours: doc.Graph.FromNeighbours, Parts: doc.Embeddings}
}

// Open implements export.Generations.
func (g Generations) Open(ctx context.Context, number int64) (export.Model, error) {
	doc, err := generation.Load(ctx, g.Store, number)
	if err != nil {
		return nil, err
	}
	open, err := generation.Open(ctx, g.Store, doc, g.Device)
	if err != nil {
		return nil, err
	}
	return open.Following(), nil
}

// Audit implements verify.Generations.
func (g Generations) Audit(ctx context.Context, a *audit.Audit) error {
	if err := generation.Audit(ctx, a, time.Now()); err != nil {
		return err
	}
	return drift.Audit(ctx, a)
}

// Complete implements verify.Generations.
func (g Generations) Complete(ctx context.Context) (all []verify.Built, err error) {
	numbers, err := generation.Numbers(ctx, g.Store)
	for _, n := range numbers {
		doc, err := generation.Load(ctx, g.Store, n)
		if errors.Is(err, generation.ErrNone) || errors.Is(err, generation.ErrDamaged) ||
			err == nil && !doc.Complete() {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, verify.Built{Generation: n, Cut: doc.Cut, Hash: doc.GraphHash})
	}
	return all, err
}
