package shard

import (
	"context"

	"giantstream/stream/commitlog"
)

// Listener hears what happens in a shard: metrics, traces and pages hang on it. No method may call
// the shard, and the shard waits for each one. All but Checkpointed are called on the goroutine
// that opens and runs the shard.
type Listener interface {
	// Step begins a step of a batch ("apply") or of a window ("commit", and in it "rows" and
	// "manifest"). The step works with the context returned, and calls ended with its error when it
	// is over.
	Step(ctx context.Context, name string) (stepCtx context.Context, ended func(error))
	// Committed hears every manifest that this Shard has created, in order.
	Committed(m *commitlog.Manifest)
	// Lost hears how many records of a topic were gone when the shard was opened.
	Lost(offsets int64)
	// Checkpointed hears of every attempt to copy the state to the store: the bytes uploaded, and
	// the error. Attempts that the shard's own end cuts off are left out. Calls come one at a time,
	// on any goroutine.
	Checkpointed(uploaded int64, err error)
	// SetAside hears that a damaged state was renamed to dir. The shard builds a new one from a
	// checkpoint or from the topics.
	SetAside(dir string, reason error)
}

// NopListener hears nothing. A listener that wants some of the events embeds it.
type NopListener struct{}

var _ Listener = NopListener{}

// Step implements Listener.
func (NopListener) Step(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// Committed implements Listener.
func (NopListener) Committed(*commitlog.Manifest) {}

// Lost implements Listener.
func (NopListener) Lost(int64) {}

// Checkpointed implements Listener.
func (NopListener) Checkpointed(int64, error) {}

// SetAside implements Listener.
func (NopListener) SetAside(string, error) {}
