package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"giantstream/cmd/bench/internal/stage"
)

// process is a child of this program.
type process struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
	err   error        // how it ended; after ended is closed
	peak  atomic.Int64 // of its resident size, MiB
}

// start runs cmd with its output in a log file.
func start(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := &process{cmd: cmd, log: f, ended: make(chan struct{})}
	go func() {
		p.err = errors.Join(cmd.Wait(), f.Close())
		close(p.ended)
	}()
	go p.watch()
	return p, nil
}

// watch follows the process's memory. Linux keeps the peak itself; the short period only matters
// for the last value before the end.
func (p *process) watch() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if mib, err := stage.PeakMiB(strconv.Itoa(p.cmd.Process.Pid)); err == nil { // an error: it has ended
			p.peak.Store(int64(mib))
		}
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
	}
}

// stop ends the process as an operator would, or kills it after a while.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.kill()
	}
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// cpu is what the process has used; after ended is closed.
func (p *process) cpu() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// during calls f, whose context ends when the process does.
func (p *process) during(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	returned := make(chan struct{})
	defer close(returned)
	go func() {
		select {
		case <-p.ended:
			cancel(fmt.Errorf("a process has ended before it should, see %s: %w", p.log.Name(), errors.Join(p.err)))
		case <-returned:
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// giantstreamRun starts the service proper for a pipeline.
func (p *place) giantstreamRun(ctx context.Context, l pipeline, log string, flags ...string) (*process, error) {
	file, err := p.configure(l)
	if err != nil {
		return nil, err
	}
	return start(exec.CommandContext(ctx, filepath.Join(p.tools, "giantstream"),
		append([]string{"run", "-c", file}, flags...)...), filepath.Join(p.dir, log))
}
