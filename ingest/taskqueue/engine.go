package taskqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"giantstream/internal/tasks"
)

// Engine implements tasks.Engine: the workers of a queue do the tasks. One coordinator at a time uses a queue, since a
// process must hold a generation's lease to build it.
type Engine struct{ Queue }

const (
	// sweepEvery is how often the engine looks for tasks that the group has given up.
	sweepEvery = 2 * time.Second
	// probeAfter is how long no worker may report before a record is sent that means nothing.
	probeAfter = 10 * time.Second
	// idleWarning is how long no worker may take a task before the log says so.
	idleWarning = time.Minute
	// inquiries is how many tasks are looked up in the store at once.
	inquiries = 16
)

// flight is a task that the group has, or had, to hand out.
type flight struct {
	task   tasks.Task
	offset int64
	// adopted: the record is of an earlier run.
	adopted bool
	// missing: the group will not hand out the record again, and the task was not done when that was noticed.
	missing bool
	last    report // the newest that says why, zero without any
}

// run is one call of Engine.Run.
type run struct {
	*Queue
	franz *kgo.Client
	work  tasks.Work
	open  map[string]*flight // by task
	heard time.Time          // when a worker last reported
	// probe is the offset of the last probe, sent at probed.
	probe  int64
	probed time.Time
}

// Run publishes the tasks that are neither done nor in flight and returns when all are done, or with the error of one
// that was given up. A run that fails or is cancelled leaves its tasks to the workers; the next run adopts them.
func (e *Engine) Run(ctx context.Context, list []tasks.Task, work tasks.Work) error {
	todo, err := undone(ctx, list, work)
	if err != nil || len(todo) == 0 {
		return err
	}
	if err := e.prepare(ctx); err != nil {
		return err
	}
	end, err := e.Client.EndOffsets(ctx, e.Tasks, e.Reports)
	if err != nil {
		return err
	}
	franz, err := e.Client.Franz(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		e.Reports: {0: kgo.NewOffset().At(end[e.Reports][0])}}))
	if err != nil {
		return err
	}
	defer franz.Close()
	r := &run{Queue: &e.Queue, franz: franz, work: work, open: map[string]*flight{}, heard: time.Now(),
		probe: -1}
	for _, t := range todo {
		r.open[t.String()] = &flight{task: t, offset: -1}
	}
	if err := r.adopt(ctx, end[e.Tasks][0]); err != nil {
		return err
	}
	if err := r.publish(ctx, todo); err != nil {
		return err
	}
	return r.wait(ctx)
}

// undone returns the tasks whose outputs are not complete, in order.
func undone(ctx context.Context, list []tasks.Task, work tasks.Work) ([]tasks.Task, error) {
	complete := make([]bool, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inquiries)
	for i, t := range list {
		group.Go(func() (err error) {
			complete[i], err = work.Done(ctx, t)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []tasks.Task
	for i, t := range list {
		if !complete[i] {
			out = append(out, t)
		}
	}
	return out, nil
}

// adopt finds the tasks that an earlier run has published and that may still be in flight.
func (r *run) adopt(ctx context.Context, end int64) error {
	if end == 0 {
		return nil // nor is there a group yet to ask about
	}
	start, err := r.startOffset(ctx, r.franz)
	if err != nil {
		return err
	}
	for m, err := range r.Client.Range(ctx, r.Tasks, 0, start, end) {
		if err != nil {
			return fmt.Errorf("tasks in flight: %w", err)
		}
		if f := r.open[string(m.Value)]; f != nil {
			f.offset, f.adopted = m.Offset, true
		}
	}
	return nil
}

// publish sends the tasks that are not in flight.
func (r *run) publish(ctx context.Context, list []tasks.Task) error {
	var records []*kgo.Record
	for _, t := range list {
		if name := t.String(); r.open[name].offset < 0 {
			records = append(records, &kgo.Record{Topic: r.Tasks, Key: []byte(name), Value: []byte(name)})
		}
	}
	for _, result := range r.franz.ProduceSync(ctx, records...) {
		if result.Err != nil {
			return fmt.Errorf("kafka topic %q: publishing task %s: %w", r.Tasks, result.Record.Value, result.Err)
		}
		r.open[string(result.Record.Value)].offset = result.Record.Offset
	}
	r.Log.Debug("tasks published", "topic", r.Tasks, "published", len(records), "in flight before",
		len(list)-len(records))
	return nil
}

// wait returns when no task is open.
func (r *run) wait(ctx context.Context) error {
	next := time.Now().Add(sweepEvery)
	for len(r.open) > 0 {
		poll, cancel := context.WithDeadline(ctx, next)
		fetches := r.franz.PollFetches(poll)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fetches.EachError(func(topic string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				r.Log.Warn("reports of tasks cannot be read, trying again", "topic", topic, "error", err)
			}
		})
		for _, record := range fetches.Records() {
			if err := r.hear(ctx, record.Value); err != nil {
				return err
			}
		}
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(sweepEvery)
		if err := r.sweep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hear takes a report. It returns an error if a task was given up.
func (r *run) hear(ctx context.Context, value []byte) error {
	var got report
	if err := json.Unmarshal(value, &got); err != nil {
		r.Log.Warn("not a report of a task, skipped", "topic", r.Reports, "error", err)
		return nil
	}
	r.heard = time.Now()
	f := r.open[got.Task]
	if f == nil {
		return nil // done before, or of another run
	}
	switch got.Event {
	case done:
		return r.settle(ctx, f)
	case failed:
		r.Log.Warn("a task failed, trying again", "task", got.Task, "delivery", got.Delivery, "worker",
			got.Worker, "error", got.Error)
	case gaveUp:
		if !f.adopted {
			return fmt.Errorf("task %s failed %d times; the last time, on worker %s: %s", got.Task, got.Delivery,
				got.Worker, got.Error)
		}
		// The failure of an earlier run is no verdict on this one: sweep publishes the task again.
	}
	if got.Event != begun || f.last.Error == "" {
		f.last = got
	}
	return nil
}

// settle closes a task if the store says that it is done.
func (r *run) settle(ctx context.Context, f *flight) error {
	complete, err := r.work.Done(ctx, f.task)
	if err != nil {
		return fmt.Errorf("task %v: %w", f.task, err)
	}
	if complete {
		delete(r.open, f.task.String())
	}
	return nil
}

// sweep looks at the tasks that the group hands out no more: they are done, or were given up.
func (r *run) sweep(ctx context.Context) error {
	start, err := r.startOffset(ctx, r.franz)
	if err != nil {
		r.Log.Warn("the group's start offset cannot be read, trying again", "error", err)
		return nil
	}
	var past []*flight
	for _, f := range r.open {
		if f.offset < start {
			past = append(past, f)
		}
	}
	slices.SortFunc(past, func(a, b *flight) int { return int(a.offset - b.offset) })
	var again []tasks.Task
	for _, f := range past {
		if err := r.settle(ctx, f); err != nil {
			return err
		}
		switch {
		case r.open[f.task.String()] == nil:
		case f.adopted:
			*f = flight{task: f.task, offset: -1}
			again = append(again, f.task)
		case f.missing:
			return givenUp(f)
		default:
			f.missing = true // its last report may still be on its way
		}
	}
	if err := r.nudge(ctx, start); err != nil {
		return err
	}
	if quiet := time.Since(r.heard); quiet > idleWarning && len(past) == 0 {
		r.Log.Warn("no worker has reported on a task: are there any? (giantstream run --roles build)",
			"tasks", len(r.open), "for", quiet.Round(time.Second))
		r.heard = time.Now()
	}
	if len(again) == 0 {
		return nil
	}
	return r.publish(ctx, again)
}

// nudge sends a probe if no worker has reported for a while. Apache Kafka stores the start offset of a group when a
// record is acknowledged: that it has given up the last task becomes visible with the next record. At most one probe
// is under way.
func (r *run) nudge(ctx context.Context, start int64) error {
	if r.probe >= start || time.Since(r.heard) < probeAfter || time.Since(r.probed) < probeAfter {
		return nil
	}
	sent, err := r.franz.ProduceSync(ctx, &kgo.Record{Topic: r.Tasks, Value: []byte(probe)}).First()
	if err != nil {
		return fmt.Errorf("kafka topic %q: sending a probe: %w", r.Tasks, err)
	}
	r.probe, r.probed = sent.Offset, time.Now()
	return nil
}

func givenUp(f *flight) error {
	switch {
	case f.last.Task == "":
		return fmt.Errorf("task %v: the share group has dropped it, and no worker has reported on it; "+
			"run the build again", f.task)
	case f.last.Error == "":
		return fmt.Errorf("task %v was given up after %d deliveries: its workers ended without a word, last %s; "+
			"see whether they ran out of memory, then run the build again", f.task, f.last.Delivery, f.last.Worker)
	}
	return fmt.Errorf("task %v was given up after %d deliveries; what it failed with, on worker %s: %s", f.task,
		f.last.Delivery, f.last.Worker, f.last.Error)
}
