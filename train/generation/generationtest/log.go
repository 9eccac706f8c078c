package generationtest

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// LogOf is a source as a commit log: one split for each shard of its cut.
func LogOf(src generation.Source) work.Log { return log{src} }

type log struct{ generation.Source }

// Size implements build.Log.
func (l log) Size(ctx context.Context) (size stages.Size, err error) {
	for r, err := range l.Source.Rows(ctx) {
		if err != nil {
			return size, err
		}
		size.Rows++
		size.Bytes += int64(len(r.Text))
	}
	for range l.Orders(ctx, 0) {
		size.Orders = true
		break
	}
	for range l.Vectors(ctx, 0) {
		size.Vectors = true
		break
	}
	for _, shard := range slices.Sorted(maps.Keys(l.Cut())) {
		size.Splits = append(size.Splits, stages.Split{Shard: shard, To: l.Cut()[shard]})
	}
	return size, nil
}

// Rows implements build.Log.
func (l log) Rows(ctx context.Context, s stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for r, err := range l.Source.Rows(ctx) {
			if err != nil || r.Shard == s.Shard {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// Orders implements build.Log: those of a source that has some.
func (l log) Orders(_ context.Context, shard int) iter.Seq2[rows.Order, error] {
	return func(yield func(rows.Order, error) bool) {
		o, ok := l.Source.(interface{ Orders() []rows.Order })
		if !ok || shard > 0 {
			return
		}
		for _, order := range o.Orders() {
			if !yield(order, nil) {
				return
			}
		}
	}
}

// Vectors implements build.Log: those of a source that has some.
func (l log) Vectors(_ context.Context, shard int) iter.Seq2[rows.Vectors, error] {
	return func(yield func(rows.Vectors, error) bool) {
		v, ok := l.Source.(interface{ Vectors() []rows.Vectors })
		if !ok || shard > 0 {
			return
		}
		for _, vectors := range v.Vectors() {
			if !yield(vectors, nil) {
				return
			}
		}
	}
}

// Fingerprint implements build.Log.
func (l log) Fingerprint() work.Fingerprint { return new(fingerprint) }

// fingerprint adds up hashes of the rows.
type fingerprint [16]byte

func (f *fingerprint) add(other []byte) {
	carry := 0
	for k := range f {
		carry += int(f[k]) + int(other[k])
		f[k], carry = byte(carry), carry>>8
	}
}

// Add implements build.Fingerprint.
func (f *fingerprint) Add(r *rows.Row) {
	h := fnv.New128a()
	fmt.Fprintf(h, "%q %q %q %q", r.NodeID, r.Text, r.Class, r.Labels) //nolint:errcheck // a hash has no errors
	f.add(h.Sum(nil))
}

// Sum implements build.Fingerprint.
func (f *fingerprint) Sum() string { return hex.EncodeToString(f[:]) }

// Merge implements build.Fingerprint.
func (f *fingerprint) Merge(sum string) error {
	b, err := hex.DecodeString(sum)
	if err == nil && len(b) != len(f) {
		err = fmt.Errorf("%q is no fingerprint", sum)
	}
	if err == nil {
		f.add(b)
	}
	return err
}

// Worker returns a worker that builds a source's graph in a store, whatever the cut.
func Worker(store sink.Store, src generation.Source) *build.Worker {
	return &build.Worker{Means: work.Means{Store: store, Resources: fit.Resources{Workers: 2, MemoryLimit: 1 << 30,
		Log: slog.New(slog.DiscardHandler), Now: time.Now},
		Log: func(context.Context, map[int]int64) (work.Log, error) { return LogOf(src), nil }}}
}

// Build builds the next generation of a source's graph in a store.
func Build(t testing.TB, store sink.Store, src generation.Source, s fit.Settings) *generation.Doc {
	t.Helper()
	doc, err := Worker(store, src).Build(t.Context(), build.Request{Settings: s, Shards: 1}, stages.Finish)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
