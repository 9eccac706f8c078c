package staged

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"giantstream/internal/parallel"
	"giantstream/internal/seal"
	"giantstream/internal/tasks"
	"giantstream/internal/tempfile"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// Log is the commit log at a cut, as tasks read it: each shard on its own.
type Log interface {
	// Size returns how much there is to read, and how it is divided.
	Size(ctx context.Context) (Size, error)
	// Rows yields the committed rows of a split. Of several rows of a node, that of the highest Seq counts; all may
	// come, in any order.
	Rows(ctx context.Context, s Split) iter.Seq2[generation.Row, error]
	// Fingerprint returns a fingerprint of no nodes.
	Fingerprint() Fingerprint
}

// Fingerprint identifies a graph, whatever the order in which nodes are added. A node is added once.
type Fingerprint interface {
	Add(*rows.Row)
	Sum() string
	// Merge adds what another fingerprint has seen, given its Sum.
	Merge(sum string) error
}

// Worker does the tasks of staged builds. It implements tasks.Work.
type Worker struct {
	Store sink.Store
	// Log returns the commit log at a cut.
	Log func(ctx context.Context, cut map[int]int64) (Log, error)
	// Resources bound each task; Progress is not used.
	fit.Resources
	// CheckpointEvery is the time between two checkpoints of the encoder's training, 0 for none.
	CheckpointEvery time.Duration
	// Patience is how long processes that train an encoder together wait for each other, 0 for DefaultPatience.
	Patience time.Duration

	mu     sync.Mutex
	builds map[int64]*build
	// running tasks; idle runs while there is none.
	running int
	idle    *time.Timer
}

// forgetAfter is how long a worker without tasks keeps what it knows of a build, and its models.
const forgetAfter = time.Minute

// build is a generation as tasks see it.
type build struct {
	*Worker
	plan Plan
	doc  *generation.Doc
	mu   sync.Mutex
	done map[tasks.Task]*done
	models
}

// of returns the build of a generation, nil for one that is complete. It looks for the plan each time: without one,
// the generation is complete or gone, and a late task must not write any more.
func (w *Worker) of(ctx context.Context, g int64) (*build, error) {
	plan, err := LoadPlan(ctx, w.Store, g)
	none := errors.Is(err, ErrNoPlan)
	if err != nil && !none {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.builds[g]; b != nil && b.plan.Token == plan.Token {
		return b, nil
	}
	delete(w.builds, g)
	doc, lerr := generation.Load(ctx, w.Store, g)
	switch {
	case errors.Is(lerr, generation.ErrNone):
		return nil, fmt.Errorf("generation %d: %w", g, ErrNoPlan)
	case lerr != nil:
		return nil, lerr
	case none && doc.Complete():
		return nil, nil
	case none:
		return nil, err
	}
	b := &build{Worker: w, plan: plan, doc: doc, done: map[tasks.Task]*done{}}
	if w.builds == nil {
		w.builds = map[int64]*build{}
	}
	w.builds[g] = b
	return b, nil
}

// Do does a task. A task of a generation that is complete has nothing to do. A panic of a stage is an error: what
// else the process does goes on.
func (w *Worker) Do(ctx context.Context, t tasks.Task) (err error) {
	b, err := w.of(ctx, t.Generation)
	if err != nil || b == nil {
		return err
	}
	s, ok := b.plan.stage(t.Stage)
	if !ok || t.Partition < 0 || t.Partition >= s.Tasks {
		return fmt.Errorf("%w: %v", ErrNoTask, t)
	}
	b.keep(s.Reads)
	defer w.works()()
	defer func() {
		if v := recover(); v != nil {
			p, ok := v.(*parallel.Panic)
			if !ok {
				p = &parallel.Panic{Value: v, Stack: debug.Stack()}
			}
			err = fmt.Errorf("%w: %w", generation.ErrPanic, p)
		}
	}()
	run := &task{build: b, Task: t, outputs: map[string]output{}}
	err = stageFunctions[t.Stage](run, ctx)
	if damaged := new(DamagedError); errors.As(err, &damaged) {
		return errors.Join(err, b.forget(ctx, damaged.Task))
	}
	if err != nil || t.Stage == Finish {
		return err
	}
	return run.finish(ctx)
}

// works notes that a task begins, and returns what notes its end. A worker without tasks lets go of its builds after a
// while.
func (w *Worker) works() (rest func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
	if w.idle != nil {
		w.idle.Stop()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.running--; w.running == 0 {
			w.idle = time.AfterFunc(forgetAfter, w.forgetAll)
		}
	}
}

func (w *Worker) forgetAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running > 0 {
		return // a task began as the time ran out
	}
	for _, b := range w.builds {
		b.keep(nil)
	}
	clear(w.builds)
}

// Done says whether a task's outputs are complete.
func (w *Worker) Done(ctx context.Context, t tasks.Task) (bool, error) {
	b, err := w.of(ctx, t.Generation)
	if err != nil || b == nil {
		return err == nil, err
	}
	if t.Stage == Finish {
		return false, nil // there is a plan
	}
	b.mu.Lock()
	delete(b.done, t) // it may have been made undone since
	b.mu.Unlock()
	_, err = b.load(ctx, t)
	if missing := new(MissingError); errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}

var stageFunctions = map[string]func(*task, context.Context) error{
	Scatter: (*task).scatter, Number: (*task).number, Index: (*task).index, Resolve: (*task).resolve,
	Link: (*task).link, Count: (*task).count, Merge: (*task).merge, Vectorizer: (*task).vectorizer,
	Projection: (*task).projection, Vectorise: (*task).vectorise, PIFA: (*task).pifa, Trunk: (*task).trunk,
	Deal: (*task).deal, Branch: (*task).branch, Tree: (*task).tree, Dataset: (*task).dataset,
	Encoder: (*task).encoder, Evaluate: (*task).evaluate, Encode: (*task).encode, Finish: (*task).finishGeneration,
	Features: (*task).features, Mapping: (*task).mapping, Fill: (*task).fill, Compare: (*task).compare,
}

// MissingError says that a task was asked for before one that it needs was done.
type MissingError struct{ Task tasks.Task }

func (e *MissingError) Error() string {
	return fmt.Sprintf("task %v is not done yet; do it first: "+
		"giantstream build stage %s --partition %d --generation %d", e.Task, e.Task.Stage, e.Task.Partition,
		e.Task.Generation)
}

// DamagedError says that an output of a task is missing or not what was stored. The task counts as not done any more.
type DamagedError struct {
	Task tasks.Task
	err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("an output of task %v is damaged; the task has to be done again, and then this one: %v", e.Task,
		e.err)
}

func (e *DamagedError) Unwrap() error { return e.err }

// output is an object that a task has written.
type output struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
	// Rows are those of a Parquet file, Shard is whose they are.
	Rows  int64 `json:"rows,omitempty"`
	Shard int   `json:"shard,omitempty"`
}

func (o output) ref() sink.Ref { return sink.Ref{Key: o.Key, Bytes: o.Bytes, CRC32C: o.CRC32C} }

func (o output) part() generation.Part {
	return generation.Part{Key: o.Key, Shard: o.Shard, Rows: o.Rows, Bytes: o.Bytes, CRC32C: o.CRC32C}
}

// done is the last object that a task writes: its outputs, and what is small.
type done struct {
	Task    string            `json:"task"`
	Outputs map[string]output `json:"outputs"`
	Stats   json.RawMessage   `json:"stats,omitempty"`

	task  tasks.Task
	build *build
}

func folder(t tasks.Task) string {
	return fmt.Sprintf("%s%s/%05d/", TasksPrefix(t.Generation), t.Stage, t.Partition)
}

const doneName = "/done.json"

func doneKey(t tasks.Task) string { return strings.TrimSuffix(folder(t), "/") + doneName }

// load returns what a task has left: MissingError if it is not done. A document that is damaged counts as none.
func (b *build) load(ctx context.Context, t tasks.Task) (*done, error) {
	b.mu.Lock()
	d := b.done[t]
	b.mu.Unlock()
	if d != nil {
		return d, nil
	}
	data, err := sink.ReadAll(ctx, b.Store, doneKey(t))
	if errors.Is(err, sink.ErrNotFound) {
		return nil, &MissingError{t}
	}
	if err != nil {
		return nil, err
	}
	d = &done{}
	body, sealed, err := seal.Open(data)
	if err != nil || !sealed || json.Unmarshal(body, d) != nil || d.Task != t.String() {
		return nil, &MissingError{t}
	}
	d.task, d.build = t, b
	b.mu.Lock()
	b.done[t] = d
	b.mu.Unlock()
	return d, nil
}

// from returns what a task of another stage has left.
func (b *build) from(ctx context.Context, stage string, partition int) (*done, error) {
	return b.load(ctx, tasks.Task{Generation: b.plan.Generation, Stage: stage, Partition: partition})
}

// stats reads the figures that a task has left.
func stats[T any](ctx context.Context, b *build, stage string, partition int) (v T, err error) {
	d, err := b.from(ctx, stage, partition)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(d.Stats, &v); err != nil {
		return v, &DamagedError{d.task, err}
	}
	return v, nil
}

// forget makes a task one that is not done.
func (b *build) forget(ctx context.Context, t tasks.Task) error {
	b.mu.Lock()
	delete(b.done, t)
	b.mu.Unlock()
	return b.Store.Delete(ctx, doneKey(t))
}

// explain makes an error of reading an output one of its task.
func (d *done) explain(err error) error {
	if errors.Is(err, sink.ErrDamaged) || errors.Is(err, sink.ErrNotFound) || errors.Is(err, errShort) ||
		generation.IsDamage(err) {
		return &DamagedError{d.task, err}
	}
	return err
}

func (d *done) output(name string) (output, error) {
	o, ok := d.Outputs[name]
	if !ok {
		return o, &DamagedError{d.task, fmt.Errorf("it does not name %s", name)}
	}
	return o, nil
}

// sections opens an output. Close it after use.
func (d *done) sections(ctx context.Context, name string) (*input, error) {
	o, err := d.output(name)
	if err != nil {
		return nil, err
	}
	s, err := openSections(ctx, d.build.Store, o.ref())
	if err != nil {
		return nil, d.explain(err)
	}
	return &input{s, d}, nil
}

// section reads a section of an output.
func (d *done) section(ctx context.Context, name string, k int) ([]byte, error) {
	s, err := d.sections(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.section(k)
}

// input is an open output of another task.
type input struct {
	*sections
	from *done
}

func (i *input) section(k int) ([]byte, error) {
	b, err := i.sections.section(k)
	return b, i.from.explain(err)
}

// artifact reads an output whole, verified.
func artifact[T any](ctx context.Context, b *build, stage, name string, read func(io.Reader) (T, error)) (v T,
	err error) {
	d, err := b.from(ctx, stage, 0)
	if err != nil {
		return v, err
	}
	o, err := d.output(name)
	if err != nil {
		return v, err
	}
	object, err := sink.OpenVerified(ctx, b.Store, o.ref())
	if err != nil {
		return v, d.explain(err)
	}
	defer object.Close()
	v, err = read(bufio.NewReaderSize(io.NewSectionReader(object, 0, object.Size()), 1<<20))
	return v, d.explain(err)
}

// task is a task that is being done.
type task struct {
	*build
	tasks.Task
	outputs map[string]output
	stats   any
}

// resources are those of the task: nobody watches its progress.
func (t *task) resources() fit.Resources {
	r := t.Resources
	r.Progress, r.Log = train.OrDiscard(nil), r.Log.With("task", t.Task.String())
	return r
}

// put stores what write produces as an output under key, "" for a place among the task's own.
func (t *task) put(ctx context.Context, name, key string, write func(io.Writer) error) error {
	if key == "" {
		key = folder(t.Task) + name
	}
	o, err := t.store(ctx, key, write)
	if err == nil {
		t.outputs[name] = o
	}
	return err
}

// store stores what write produces, through a temporary file.
func (b *build) store(ctx context.Context, key string, write func(io.Writer) error) (o output, err error) {
	f, err := tempfile.Create("giantstream-task-*")
	if err != nil {
		return o, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	if err := errors.Join(write(w), w.Flush()); err != nil {
		return o, fmt.Errorf("%s: %w", key, err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return o, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return o, err
	}
	return output{Key: key, Bytes: size, CRC32C: sum.Sum32()}, b.Store.Put(ctx, key, f.File, size)
}

// newSections returns sections that are kept in memory up to an eighth of the limit.
func (t *task) newSections(n int) *sectionWriter {
	s := newSections(n)
	if limit := int(t.MemoryLimit / 8); limit > 0 {
		s.budget = min(s.budget, limit)
	}
	return s
}

// putSections stores an object of sections.
func (t *task) putSections(ctx context.Context, name string, s *sectionWriter) error {
	if s.w == nil && s.held < 4<<20 { // small enough for memory
		var b bytes.Buffer
		if err := s.writeTo(&b); err != nil {
			return err
		}
		key := folder(t.Task) + name
		t.outputs[name] = output{Key: key, Bytes: int64(b.Len()), CRC32C: crc32.Checksum(b.Bytes(), castagnoli)}
		return sink.PutBytes(ctx, t.Store, key, b.Bytes())
	}
	return t.put(ctx, name, "", s.writeTo)
}

// finish writes the document that makes the task done.
func (t *task) finish(ctx context.Context) error {
	d := done{Task: t.Task.String(), Outputs: t.outputs}
	if t.stats != nil {
		data, err := json.Marshal(t.stats)
		if err != nil {
			return err
		}
		d.Stats = data
	}
	data, err := seal.JSON(d)
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, t.Store, doneKey(t.Task), data)
}
