package taskqueue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/tasks"
)

// patience bounds every test: what hangs fails.
const patience = 2 * time.Minute

// lock is the shortest lock that Apache Kafka takes with cmd/dev/kafka/server's settings.
const lock = time.Second

// folder is work whose outputs are files: one per task, whole or not there.
type folder struct {
	dir string
	// begin, if not nil, is called at the beginning of every task.
	begin func(context.Context, tasks.Task) error

	mu   sync.Mutex
	runs map[tasks.Task]int
}

func (f *folder) path(t tasks.Task) string {
	return filepath.Join(f.dir, strings.ReplaceAll(t.String(), "/", "-"))
}

func (f *folder) Do(ctx context.Context, t tasks.Task) error {
	f.mu.Lock()
	if f.runs == nil {
		f.runs = map[tasks.Task]int{}
	}
	f.runs[t]++
	f.mu.Unlock()
	if f.begin != nil {
		if err := f.begin(ctx, t); err != nil {
			return err
		}
	}
	part, err := os.CreateTemp(f.dir, "part-*")
	if err != nil {
		return err
	}
	_, err = part.WriteString("output of " + t.String())
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), f.path(t))
}

func (f *folder) Done(_ context.Context, t tasks.Task) (bool, error) {
	_, err := os.Stat(f.path(t))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (f *folder) count(t tasks.Task) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[t]
}

// check fails the test unless all outputs of the tasks are there and whole.
func (f *folder) check(t *testing.T, list []tasks.Task) {
	t.Helper()
	for _, task := range list {
		got, err := os.ReadFile(f.path(task))
		if err != nil || string(got) != "output of "+task.String() {
			t.Errorf("task %v: %q, %v", task, got, err)
		}
		if n := f.count(task); n > taskqueue.MaxDeliveries {
			t.Errorf("task %v was done %d times", task, n)
		}
	}
}

func stage(generation int64, name string, n int) []tasks.Task {
	list := make([]tasks.Task, n)
	for i := range list {
		list[i] = tasks.Task{Generation: generation, Stage: name, Partition: i}
	}
	return list
}

// start returns a context for the test, and a queue on a broker whose locks are short.
func start(t *testing.T) (context.Context, *kafkatest.Env, taskqueue.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	e := kafkatest.Start(t, 1)
	q := taskqueue.Queue{Client: e.Client, Tasks: e.Topic("tasks"), Reports: e.Topic("reports"), Group: e.Group + "-build",
		Log: logger(t)}
	shortLocks(t, q)
	t.Cleanup(func() { remove(t, q) })
	return ctx, e, q
}

// logger logs to the test's output.
func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// shortLocks makes the locks of a group last for lock: on Apache Kafka they are the group's, on the embedded broker
// the broker's.
func shortLocks(t *testing.T, q taskqueue.Queue) {
	t.Helper()
	kind, name := kmsg.ConfigResourceTypeGroupConfig, q.Group
	settings := map[string]string{"share.record.lock.duration.ms": strconv.Itoa(int(lock.Milliseconds()))}
	if kafkatest.Brokers() == nil {
		kind, name = kmsg.ConfigResourceTypeBroker, ""
		settings = map[string]string{"group.share.record.lock.duration.ms": strconv.Itoa(int(lock.Milliseconds())),
			"share.record.lock.sweep.interval.ms": "100"}
	}
	franz, err := q.Client.Franz()
	if err != nil {
		t.Fatal(err)
	}
	defer franz.Close()
	if err := client.Configure(t.Context(), franz, kind, name, settings); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, q taskqueue.Queue) {
	franz, err := q.Client.Franz()
	if err != nil {
		t.Error(err)
		return
	}
	defer franz.Close()
	req := kmsg.NewPtrDeleteTopicsRequest()
	for _, name := range []string{q.Tasks, q.Reports} {
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := req.RequestWith(ctx, franz); err != nil {
		t.Logf("topics are left on the cluster: %v", err)
	}
}

// worker runs a worker of generation g until the test ends or the returned function is called, which waits for it.
func worker(ctx context.Context, t *testing.T, q taskqueue.Queue, g int64, work tasks.Work) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	w := &taskqueue.Worker{Queue: q, Name: "in-process", Pause: time.Millisecond,
		Generation: func(context.Context) (int64, error) { return g, nil }}
	go func() { ended <- w.Run(ctx, work) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("worker: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// engine runs a stage in the background; the returned function waits for it.
func engine(ctx context.Context, q taskqueue.Queue, list []tasks.Task, work tasks.Work) (wait func() error) {
	ended := make(chan error, 1)
	go func() { ended <- (&taskqueue.Engine{Queue: q}).Run(ctx, list, work) }()
	return func() error { return <-ended }
}

// process is a worker in a process of its own. At each task it says so, and waits for word before it goes on.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

const (
	envWorker = "GIANTSTREAM_TEST_TASKS"
	envFolder = "GIANTSTREAM_TEST_TASKS_FOLDER"
)

func startProcess(ctx context.Context, t *testing.T, q taskqueue.Queue, dir string) *process {
	t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWorkerProcess$", "-test.v")
	cmd.Env = append(os.Environ(), envFolder+"="+dir,
		envWorker+"="+strings.Join([]string{strings.Join(q.Client.Brokers(), ","), q.Tasks, q.Reports, q.Group}, " "))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	return p
}

// await returns what follows a word at the beginning of a line of the process's output.
func (p *process) await(t *testing.T, word string) string {
	t.Helper()
	rest, ok := p.next(word)
	if !ok {
		t.Fatalf("the worker's process ended before it said %q: %v", word, p.out.Err())
	}
	return rest
}

// next is await; ok is false when the process has ended.
func (p *process) next(word string) (rest string, ok bool) {
	for p.out.Scan() {
		if rest, ok := strings.CutPrefix(p.out.Text(), word+" "); ok {
			return rest, true
		}
	}
	return "", false
}

// TestWorkerProcess is the worker's process; it is no test of its own.
func TestWorkerProcess(t *testing.T) {
	settings := strings.Fields(os.Getenv(envWorker))
	if len(settings) != 4 {
		t.Skip("only other tests start it")
	}
	c, err := client.New(client.Options{Brokers: strings.Split(settings[0], ",")})
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(os.Stdin)
	work := &folder{dir: os.Getenv(envFolder), begin: func(_ context.Context, task tasks.Task) error {
		fmt.Printf("begun %v\n", task)
		in.Scan()
		return nil
	}}
	w := &taskqueue.Worker{Queue: taskqueue.Queue{Client: c, Tasks: settings[1], Reports: settings[2],
		Group: settings[3], Log: logger(t)}, Name: "process",
		Generation: func(context.Context) (int64, error) { return 7, nil }}
	t.Log(w.Run(t.Context(), said{work}))
}

// said says which tasks were done.
type said struct{ *folder }

func (s said) Do(ctx context.Context, t tasks.Task) error {
	err := s.folder.Do(ctx, t)
	fmt.Printf("finished %v %v\n", t, err)
	return err
}
