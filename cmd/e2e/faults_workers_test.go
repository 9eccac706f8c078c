package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// faultSession is the group's session timeout: a worker that is silent for longer loses its shards.
const faultSession = time.Second

// faultWorker is a worker that is started again whenever it ends.
type faultWorker struct {
	name, config, state string

	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	log  workerLog     // of all its processes
	// diskless has the pids of processes that have met a full disk.
	diskless map[int]bool
}

// newWorker prepares worker i of the pipeline.
func (r *faultRun) newWorker(i int) *faultWorker {
	w := &faultWorker{name: fmt.Sprint("worker ", i), state: filepath.Join(r.dir, fmt.Sprint("state-", i)),
		diskless: map[int]bool{}}
	w.config = writeFile(r.t, filepath.Join(r.dir, fmt.Sprintf("worker-%d.yaml", i)),
		r.connect+r.settings()+fmt.Sprintf("state_dir: %q\n", filepath.ToSlash(w.state)))
	return w
}

// start starts the worker unless it runs.
func (w *faultWorker) start(t *testing.T) {
	t.Helper()
	if !w.ended() {
		return
	}
	w.cmd = command(t, "run", "-c", w.config, "--log-format", "text", "--log-level", "info")
	w.cmd.Stdout, w.cmd.Stderr = &w.log, &w.log
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&w.log, "---- process %d\n", w.pid())
	done := make(chan struct{})
	w.done = done
	go func(cmd *exec.Cmd) {
		defer close(done)
		err := cmd.Wait()
		fmt.Fprintf(&w.log, "---- process %d has ended: %v\n", cmd.Process.Pid, err)
	}(w.cmd)
}

func (w *faultWorker) pid() int { return w.cmd.Process.Pid }

func (w *faultWorker) ended() bool {
	if w.cmd == nil {
		return true
	}
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *faultWorker) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// kill ends the worker without warning.
func (w *faultWorker) kill() {
	_ = w.cmd.Process.Kill() // it may have ended by itself
	<-w.done
}

// stop asks the worker to end and waits until it has.
func (w *faultWorker) stop(t *testing.T) {
	t.Helper()
	w.signal(t, syscall.SIGTERM)
	select {
	case <-w.done:
	case <-time.After(longest):
		t.Fatalf("%s does not end although it was asked to %v ago", w.name, longest)
	}
}

// supervise restarts workers that have ended by themselves.
func (r *faultRun) supervise() {
	r.t.Helper()
	for _, w := range r.crew {
		w.start(r.t)
	}
}

// dropGhosts has the embedded broker's group rebalance if it has more members than there are
// workers: kfake never drops a member that lost its connection while joining, and leaves the
// member's shards assigned for ever. Kafka drops it after the session timeout.
func (r *faultRun) dropGhosts() {
	r.t.Helper()
	if r.flags != "" {
		return
	}
	admin := kafka.Client{Addr: kafka.TCP(r.client.Brokers()...)}
	res, err := admin.DescribeGroups(r.t.Context(),
		&kafka.DescribeGroupsRequest{GroupIDs: []string{"giantstream-" + r.pipeline}})
	if err != nil || len(res.Groups) != 1 {
		r.t.Logf("the group cannot be described: %v", err)
		return
	}
	if g := res.Groups[0]; g.GroupState == "Stable" && len(g.Members) > len(r.crew) {
		r.t.Logf("%d members of the group, %d workers: a rebalance", len(g.Members), len(r.crew))
		r.crew[0].stop(r.t)
		r.crew[0].start(r.t)
	}
}

// checkCrew checks that no worker has crashed, except on a full disk.
func (r *faultRun) checkCrew() {
	r.t.Helper()
	for _, w := range r.crew {
		pid := 0
		for line := range strings.Lines(w.log.String()) {
			if n, _ := fmt.Sscanf(line, "---- process %d", &pid); n > 0 || w.diskless[pid] {
				continue
			}
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line,
				"DATA RACE") {
				r.t.Errorf("%s: %s", w.name, line)
			}
		}
	}
}

// dump logs what each worker has said.
func (r *faultRun) dump() {
	const most = 40_000
	for _, w := range r.crew {
		log := w.log.String()
		r.t.Logf("==== %s (ended: %t)\n%s", w.name, w.ended(), log[max(0, len(log)-most):])
	}
}

// workerLog is written by processes and read by the test.
type workerLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *workerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *workerLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
