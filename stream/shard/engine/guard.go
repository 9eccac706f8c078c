package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Why a state cannot be used.
var (
	// ErrDamaged: the files of the local state are not what the engine wrote.
	ErrDamaged = errors.New("local state is damaged")
	// ErrDiskFull: there is not enough space for the local state. The state is whole.
	ErrDiskFull = errors.New("disk of the local state is full")
	// ErrInUse: another process, or another shard of this one, has the state directory open.
	ErrInUse = errors.New("local state is in use")
)

// Guard stands between a shard and its storage engine. The engine reports failures in several
// ways: by an error, by a panic, by an event or a fatal message from a goroutine of its own, or by
// never returning. The guard keeps the first one, so that all of them become an error of the shard.
type Guard struct {
	once   sync.Once
	failed chan struct{} // closed after err is set
	err    error
	grace  time.Duration
	// left: a call did not return and was left behind. For the goroutine that calls Run.
	left bool
}

// NewGuard returns a guard of an engine that has not failed. grace is how long Run waits for a call
// into one that has: Grace, except in tests.
func NewGuard(grace time.Duration) *Guard {
	return &Guard{failed: make(chan struct{}), grace: grace}
}

// Fail notes why the engine cannot go on. Only the first reason counts.
func (g *Guard) Fail(err error) {
	g.once.Do(func() {
		g.err = err
		close(g.failed)
	})
}

// Failure returns why the engine cannot go on, nil if it can.
func (g *Guard) Failure() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// Failed is closed when the engine has failed.
func (g *Guard) Failed() <-chan struct{} { return g.failed }

// LeftCallBehind reports whether Run has left a call behind. The database must not be closed then. Only the
// goroutine that calls Run may call it.
func (g *Guard) LeftCallBehind() bool { return g.left }

// Grace is how long a call into an engine that has failed may take to return. A call that
// waits for a background goroutine of the engine never does.
const Grace = 3 * time.Second

// Run calls f, which uses the engine. If the engine fails meanwhile, the context of f ends. If f
// still does not return soon, Run leaves it behind: its goroutine and the engine's memory stay
// until the process ends. The caller must then not use what f uses.
func (g *Guard) Run(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer g.Catch(&err)
		err = f(ctx)
	}()
	select {
	case err := <-done:
		return g.explain(err)
	case <-g.failed:
	}
	cancel()
	grace := time.NewTimer(g.grace)
	defer grace.Stop()
	select {
	case <-done: //nolint:errcheck // it follows from the failure
	case <-grace.C:
		g.left = true
	}
	return g.Failure()
}

// Catch turns a panic of the engine into a failure. Other panics are bugs, which end the process.
// It is deferred in every goroutine, and in every coroutine (iter.Pull), in which the engine is
// called.
func (g *Guard) Catch(err *error) {
	p := recover()
	if p == nil {
		return
	}
	if !panickedInPebble() {
		panic(p)
	}
	g.Fail(fmt.Errorf("%w: storage engine: %v", ErrDamaged, p))
	*err = g.Failure()
}

// pebblePackage is a prefix of the names of the engine's functions.
const pebblePackage = "github.com/cockroachdb/"

// panickedInPebble reports whether the panic that is being recovered came from the engine: whether
// the engine is nearer to it than this package.
func panickedInPebble() bool {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicked := false
	for {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, "runtime."):
			panicked = panicked || frame.Function == "runtime.gopanic"
		case panicked && strings.HasPrefix(frame.Function, pebblePackage):
			return true
		case panicked && strings.HasPrefix(frame.Function, "giantstream/"):
			return false
		}
		if !more {
			return false
		}
	}
}

// explain returns the engine's failure in place of an error that followed from it. Errors that say
// that the files are damaged are noted. Errors of the file system are not looked for here: f may
// use the store as well, which may lie on a disk, too. Those of the engine's disk come from FS.
func (g *Guard) explain(err error) error {
	switch {
	case err == nil:
	case isAny(err, ErrDamaged, ErrDiskFull, ErrInUse):
		g.Fail(err)
	case pebble.IsCorruptionError(err):
		g.Fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	return cmp.Or(g.Failure(), err)
}

// FileFailure returns what an error of the state's file system means: ErrDiskFull or
// ErrDamaged that wraps err, err itself if the surroundings are to blame (permissions, too many
// open files), or nil if it says nothing.
func FileFailure(err error) error {
	switch {
	case err == nil:
	case isAny(err, syscall.ENOSPC, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	case isAny(err, surroundings...):
		return err
	case isAny(err, syscall.EIO):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// surroundings are errors of a file system that say nothing about its files.
var surroundings = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM, syscall.EROFS}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// Failure returns what an error means that only the engine's own work can have caused. Without
// another explanation the files are damaged: what the engine cannot open or go on with is not what
// it wrote.
func Failure(err error) error {
	if err == nil || isAny(err, ErrDamaged, ErrDiskFull, ErrInUse) {
		return err
	}
	if known := FileFailure(err); known != nil {
		return known
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// listener makes failures in the engine's own goroutines known to the guard.
func (g *Guard) listener(log *logger) *pebble.EventListener {
	return &pebble.EventListener{
		// A failed flush or compaction. The engine would try again at once and for ever, and block
		// all writers meanwhile.
		BackgroundError: func(err error) {
			log.Errorf("background error: %s", err)
			g.Fail(Failure(err))
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Errorf("%s", info)
			g.Fail(fmt.Errorf("%w: %s: %w", ErrDamaged, info.Path, info.Details))
		},
	}
}

// fatal is logger's Fatalf: the engine cannot continue, and the call must not return. The
// goroutine, which may be one of the engine's own, is left behind with whatever locks it holds:
// unwinding it would run the engine's deferred functions on half-made structures.
func (g *Guard) fatal(message string) {
	g.Fail(Failure(errors.New("storage engine: " + message)))
	select {}
}
