package commitlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"giantstream/internal/retry"
	"giantstream/sink"
)

// ErrTaken: the number of a manifest is taken. Another worker has gone on, and this one must not write again.
var ErrTaken = errors.New("the manifest's number is taken")

// createAttempts bounds the attempts to create one manifest. After the last one the writer gives up, and its next
// opening finds out whether the manifest exists.
const createAttempts = 6

// Creator creates manifests.
type Creator struct {
	Store   sink.Store
	Backoff time.Duration // first pause between attempts
	Log     *slog.Logger
}

// Create commits a manifest: ErrTaken if its number is taken, or lies behind the boundary. Any
// other error leaves open whether the manifest exists.
//
// A create without an answer is tried again. Store.Create takes an object that holds exactly these bytes for success
// and any other for sink.ErrExists, and the session id in the manifest makes the bytes unique.
func (c Creator) Create(ctx context.Context, m *Manifest) error {
	data, err := m.Encode(c.Store.Pipeline())
	if err != nil {
		return err
	}
	if err := c.create(ctx, ManifestKey(m.Shard, m.Seq), data); err != nil {
		return err
	}
	return c.confirm(ctx, m)
}

func (c Creator) create(ctx context.Context, key string, data []byte) error {
	pause := retry.Backoff{Min: c.Backoff}
	for attempt := 1; ; attempt++ {
		err := c.Store.Create(ctx, key, data)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sink.ErrExists):
			return fmt.Errorf("%w: %w", ErrTaken, err)
		case attempt == createAttempts || ctx.Err() != nil:
			return fmt.Errorf("the manifest may or may not have been written: %w", err)
		}
		c.Log.Warn("manifest not confirmed, trying again", "manifest", key, "try", attempt, "error", err)
		if pause.Wait(ctx) != nil {
			return fmt.Errorf("the manifest may or may not have been written: %w", err)
		}
	}
}

// confirm finds out whether the number was free because its manifest was removed long ago: others have committed it and
// all up to the boundary. See docs/PROTOCOL.md, "Removal of manifests".
func (c Creator) confirm(ctx context.Context, m *Manifest) error {
	pause := retry.Backoff{Min: c.Backoff}
	for attempt := 1; ; attempt++ {
		err := CheckCreated(ctx, c.Store, m.Shard, m.Seq)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrRemoved):
			return fmt.Errorf("%w: it was free, but %w", ErrTaken, err)
		case attempt == createAttempts || ctx.Err() != nil || errors.Is(err, ErrDamaged):
			return fmt.Errorf("the manifest is written, and may be behind the boundary: %w", err)
		}
		c.Log.Warn("boundary not read, trying again", "seq", m.Seq, "try", attempt, "error", err)
		if pause.Wait(ctx) != nil {
			return fmt.Errorf("the manifest is written, and may be behind the boundary: %w", err)
		}
	}
}
