package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
)

// crew is the processes with role build that do the tasks of a build, while they are killed, frozen and joined
// by others.
type crew struct {
	t *testing.T
	place
	pipeline string
	config   string // a configuration without state_dir
	dir      string
	limit    int64         // resident bytes of a process
	lock     time.Duration // of a task
	patience time.Duration // for the build
	disturb  func(stage string) bool

	members  []*member
	ended    []*member
	frozen   map[*member]time.Time // until when
	stages   map[string]*ordeal
	attempts map[string]int // by task
	next     int64          // offset in the topic of reports
}

// member is one process.
type member struct {
	name string
	cmd  *exec.Cmd
	log  workerLog
	exit chan struct{}
	peak int64 // of its resident memory so far, in bytes
}

// measure notes the peak of the resident memory. That of a process that has ended (getrusage) is no use here: it is at
// least that of the process that started it.
func (m *member) measure() {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		return // it has ended, or this is no Linux
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			m.peak = max(m.peak, kib<<10)
		}
	}
}

func (m *member) alive() bool {
	select {
	case <-m.exit:
		return false
	default:
		return true
	}
}

// ordeal is what a stage goes through.
type ordeal struct {
	killed, frozen, added int
}

// most is how many processes there are at most.
const most = 6

// command is the program with a bound on its memory, and a place for temporary files.
func (c *crew) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TMPDIR="+c.dir, fmt.Sprintf("GOMEMLIMIT=%d", c.limit/100*85))
	return cmd
}

// run runs the program to its end.
func (c *crew) run(args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), c.patience)
	defer cancel()
	if out, err := c.command(ctx, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("giantstream %q: %v\n%s", args, err, tail(string(out)))
	}
}

func tail(log string) string {
	lines := strings.SplitAfter(log, "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "")
}

// join starts another process.
func (c *crew) join() {
	c.t.Helper()
	n := len(c.members) + len(c.ended)
	m := &member{exit: make(chan struct{})}
	state := filepath.ToSlash(filepath.Join(c.dir, fmt.Sprint("state-", n)))
	path := writeFile(c.t, filepath.Join(c.dir, fmt.Sprintf("worker-%d.yaml", n)),
		c.config+fmt.Sprintf("state_dir: %q\n", state))
	m.cmd = c.command(c.t.Context(), "run", "-c", path, "--roles", "build", "--log-format", "json")
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	if err := m.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	m.name = fmt.Sprintf("%s-%d", host, m.cmd.Process.Pid) // as it calls itself in reports
	go func() {
		defer close(m.exit)
		_ = m.cmd.Wait() // its state says how it ended
	}()
	c.members = append(c.members, m)
}

func (c *crew) signal(m *member, s os.Signal) {
	c.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Fatal(err)
	}
}

// leave notes that a process was told to end.
func (c *crew) leave(m *member, s os.Signal) {
	m.measure()
	c.signal(m, s)
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
	c.ended = append(c.ended, m)
}

// taskReport is a record of the topic of reports.
type taskReport struct {
	Task, Event, Worker string
	Delivery            int
}

// reports returns what was reported since the last call.
func (c *crew) reports() (all []taskReport) {
	topic := c.pipeline + ".build-reports"
	end, err := c.client.EndOffsets(c.t.Context(), topic)
	if err != nil || len(end[topic]) == 0 {
		return nil // it is not there yet
	}
	for m, err := range c.client.Range(c.t.Context(), topic, 0, c.next, end[topic][0]) {
		if err != nil {
			return all
		}
		c.next = m.Offset + 1
		var r taskReport
		if err := json.Unmarshal(m.Value, &r); err != nil {
			c.t.Fatalf("report %s: %v", m.Value, err)
		}
		all = append(all, r)
	}
	return all
}

// watch follows the reports and disturbs each stage, until the coordinator has ended.
func (c *crew) watch(coordinator *member) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for coordinator.alive() {
		for _, r := range c.reports() {
			if r.Event == "begun" {
				c.attempts[r.Task] = max(c.attempts[r.Task]+1, r.Delivery)
				c.begun(r)
			}
		}
		for m, until := range c.frozen {
			if time.Now().After(until) {
				c.thaw(m)
			}
		}
		coordinator.measure()
		for _, m := range c.members {
			m.measure()
			if !m.alive() {
				c.t.Fatalf("process %s has ended by itself: %v\n%s", m.name, m.cmd.ProcessState, tail(m.log.String()))
			}
		}
		<-tick.C
	}
}

// begun kills the first process that reports a task of a stage, and two others join. It freezes the next one that
// reports, until its lock has long expired.
//
// A process can do all tasks of a small stage before its first report is read. If it is gone or frozen by then, another
// one is taken in its place, so that each stage is disturbed however fast it is.
func (c *crew) begun(r taskReport) {
	stage := strings.Split(r.Task, "/")[1]
	if !c.disturb(stage) {
		return
	}
	o := c.stages[stage]
	if o == nil {
		o = &ordeal{}
		c.stages[stage] = o
	}
	m := c.reporter(r.Worker)
	switch {
	case m == nil:
	case o.killed == 0:
		c.leave(m, os.Kill)
		o.killed++
		for range 2 {
			c.join()
			o.added++
		}
		for _, idle := range slices.Clone(c.members) {
			if _, ok := c.frozen[idle]; len(c.members) > most && !ok {
				c.leave(idle, syscall.SIGTERM)
			}
		}
	case o.frozen == 0 && len(c.frozen) < len(c.members)-1:
		c.signal(m, syscall.SIGSTOP)
		o.frozen++
		c.frozen[m] = time.Now().Add(2 * c.lock)
	}
}

// reporter returns the process of a report, or the oldest one that runs if that one is gone or frozen.
func (c *crew) reporter(name string) (oldest *member) {
	for _, m := range c.members {
		if _, ok := c.frozen[m]; ok {
			continue
		}
		if m.name == name {
			return m
		}
		if oldest == nil {
			oldest = m
		}
	}
	return oldest
}

// thaw lets a frozen process go on.
func (c *crew) thaw(m *member) {
	c.t.Helper()
	c.signal(m, syscall.SIGCONT)
	delete(c.frozen, m)
}

// build hands the tasks out and returns when the generation is complete.
func (c *crew) build(args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), c.patience)
	defer cancel()
	coordinator := &member{name: "coordinator", exit: make(chan struct{}),
		cmd: c.command(ctx, append([]string{"build", "--engine", "kafka", "--log-format", "json"}, args...)...)}
	coordinator.cmd.Stdout, coordinator.cmd.Stderr = &coordinator.log, &coordinator.log
	if err := coordinator.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(coordinator.exit)
		_ = coordinator.cmd.Wait()
	}()
	c.watch(coordinator)
	if code := coordinator.cmd.ProcessState.ExitCode(); code != 0 {
		c.t.Fatalf("the coordinator: %v\n%s", coordinator.cmd.ProcessState, tail(coordinator.log.String()))
	}
	for m := range c.frozen {
		c.thaw(m)
	}
	for _, m := range slices.Clone(c.members) {
		c.leave(m, syscall.SIGTERM)
	}
	for _, m := range append(c.ended, coordinator) {
		<-m.exit
		c.t.Logf("process %s: %v, peak of %d MiB", m.name, m.cmd.ProcessState, m.peak>>20)
		if m.peak > c.limit {
			c.t.Errorf("process %s: its peak of %d MiB is above %d MiB", m.name, m.peak>>20, c.limit>>20)
		}
	}
}

// shortenLocks makes the locks of tasks last for c.lock: on Apache Kafka they are the group's, on the embedded broker
// the broker's.
func (c *crew) shortenLocks(embedded *broker.Broker) {
	c.t.Helper()
	kind, name := kmsg.ConfigResourceTypeGroupConfig, "giantstream-"+c.pipeline+"-build"
	settings := map[string]string{"share.record.lock.duration.ms": strconv.FormatInt(c.lock.Milliseconds(), 10)}
	if embedded != nil {
		kind, name = kmsg.ConfigResourceTypeBroker, ""
		settings = map[string]string{"share.record.lock.sweep.interval.ms": "100",
			"group.share.record.lock.duration.ms": strconv.FormatInt(c.lock.Milliseconds(), 10)}
	}
	franz, err := c.client.Franz()
	if err != nil {
		c.t.Fatal(err)
	}
	defer franz.Close()
	if err := client.Configure(c.t.Context(), franz, kind, name, settings); err != nil {
		c.t.Fatal(err)
	}
}

// removeTopics removes the topics of tasks and reports.
func (c *crew) removeTopics(of *client.Client) {
	franz, err := of.Franz()
	if err != nil {
		c.t.Error(err)
		return
	}
	defer franz.Close()
	req := kmsg.NewPtrDeleteTopicsRequest()
	for _, name := range []string{c.pipeline + ".build-tasks", c.pipeline + ".build-reports"} {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := req.RequestWith(ctx, franz); err != nil {
		c.t.Logf("topics %s.build-* are left on the cluster: %v", c.pipeline, err)
	}
}
