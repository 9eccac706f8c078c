package retry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Loop repeats operations on one service until they succeed. It is safe for concurrent use.
type Loop struct {
	Service  string        // for the log: "the index"
	Min, Max time.Duration // bounds of the pauses; 0 means 100 ms and 15 s
	Watch    Watcher       // nil for none
	Log      *slog.Logger

	outage Outage
}

// Watcher counts what a Loop meets. Both methods may be called at once by several operations.
type Watcher interface {
	// Retried is called after every failure that will be tried again.
	Retried()
	// Recovered is called when an operation that has failed succeeds.
	Recovered()
}

// Do runs an operation until it succeeds, its error is Final, or ctx ends, when it returns ctx.Err().
// The log and a final error call the operation by its name.
func (l *Loop) Do(ctx context.Context, name string, operation func(context.Context) error) (err error) {
	pause := Backoff{Min: cmp.Or(l.Min, 100*time.Millisecond), Max: cmp.Or(l.Max, 15*time.Second)}
	defer func() {
		if lasted, over := l.outage.EndFailure(name, time.Now()); over && err == nil {
			l.Log.Warn(l.Service+" answers again", "after", lasted.Round(time.Millisecond))
		}
	}()
	for failed := false; ; failed = true {
		err = operation(ctx)
		switch {
		case err == nil:
			if failed && l.Watch != nil {
				l.Watch.Recovered()
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case Final(err):
			return fmt.Errorf("%s: %w", name, err)
		}
		if l.Watch != nil {
			l.Watch.Retried()
		}
		wait := pause.Next()
		if l.outage.Failed(name, time.Now()) {
			l.Log.Warn(l.Service+" fails, trying again until it succeeds", "at", name, "wait", wait, "error", err)
		}
		if err := Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
