package taskqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"giantstream/internal/retry"
	"giantstream/internal/tasks"
)

// Worker does the tasks of a queue, one at a time: it takes the next one only when it has answered for the last.
type Worker struct {
	Queue
	// Name is the worker's name in reports.
	Name string
	// Generation returns the generation that is being built. Tasks of others are dropped.
	Generation func(context.Context) (int64, error)
	// Pause is the wait before a task that failed is given back, doubled with each delivery up to a minute; 0 means a
	// second.
	Pause time.Duration
}

const (
	// renewEvery is the longest time between renewals. franz-go closes a connection that is idle for 30 s, and with
	// it goes the lock.
	renewEvery = 5 * time.Second
	// goodbye bounds what a worker does after its context has ended: giving its task back.
	goodbye  = 5 * time.Second
	maxPause = time.Minute
)

// Run does tasks until ctx ends, when it gives back the one that it has and returns ctx.Err(). A broker that is away
// is no error.
func (w *Worker) Run(ctx context.Context, work tasks.Work) error {
	if err := w.prepare(ctx); err != nil {
		return err
	}
	franz, err := w.Client.Franz(
		kgo.ShareGroup(w.Group), kgo.ConsumeTopics(w.Tasks),
		kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict(), // the others are for other workers
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if err := results.Error(); err != nil {
				w.Log.Info("the broker has given a task of this worker to another one", "error", err)
			}
		}))
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		if err := franz.LeaveGroupContext(bye); err != nil {
			w.Log.Debug("leaving the share group", "error", err) // the broker notices by itself
		}
		franz.Close()
	}()
	var outage retry.Outage
	for {
		fetches := franz.PollRecords(ctx, 1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fetches.Err(); err != nil {
			if answer, ok := errors.AsType[*kerr.Error](err); ok && !answer.Retriable {
				return fmt.Errorf("kafka share group %q: %w", w.Group, explain(err))
			}
			if outage.Failed(w.Group, time.Now()) {
				w.Log.Warn("no tasks can be taken, trying again until it succeeds", "group", w.Group, "error", err)
			}
			continue
		}
		if lasted, over := outage.EndFailure(w.Group, time.Now()); over {
			w.Log.Info("tasks can be taken again", "group", w.Group, "after", lasted.Round(time.Millisecond))
		}
		for _, record := range fetches.Records() {
			w.answer(ctx, franz, record, work)
		}
	}
}

// answer does the task of a record and tells the broker what became of it.
func (w *Worker) answer(ctx context.Context, franz *kgo.Client, record *kgo.Record, work tasks.Work) {
	stop := w.renew(ctx, franz, record)
	status := w.handle(ctx, franz, record, work)
	stop()
	record.Ack(status)
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if err := franz.FlushAcks(bye); err != nil {
		w.Log.Warn("a task was not acknowledged; the broker hands it out again, which is harmless", "task",
			string(record.Value), "error", err)
	}
}

func (w *Worker) handle(ctx context.Context, franz *kgo.Client, record *kgo.Record, work tasks.Work) kgo.AckStatus {
	if string(record.Value) == probe {
		return kgo.AckAccept
	}
	t, err := tasks.ParseTask(string(record.Value))
	if err != nil {
		w.Log.Error("a record of the topic of tasks was dropped", "topic", w.Tasks, "offset", record.Offset, "error",
			err)
		return kgo.AckReject
	}
	now, err := w.Generation(ctx)
	if err == nil && now != t.Generation {
		w.Log.Warn("a task was dropped: its generation is not being built", "task", t.String(), "building", now)
		return kgo.AckAccept
	}
	var complete bool
	if err == nil {
		complete, err = work.Done(ctx, t)
	}
	if err == nil && !complete {
		w.report(ctx, franz, record, begun, nil)
		err = work.Do(ctx, t)
	}
	switch {
	case err == nil:
		w.report(ctx, franz, record, done, nil)
		return kgo.AckAccept
	case ctx.Err() != nil:
		return kgo.AckRelease // this worker stops; another one goes on
	case record.DeliveryCount() >= MaxDeliveries:
		w.Log.Error("a task was given up", "task", t.String(), "delivery", record.DeliveryCount(), "error", err)
		w.report(ctx, franz, record, gaveUp, err)
		return kgo.AckReject
	}
	w.Log.Warn("a task failed and is given back", "task", t.String(), "delivery", record.DeliveryCount(), "error", err)
	w.report(ctx, franz, record, failed, err)
	_ = retry.Sleep(ctx, w.pause(record.DeliveryCount())) // stopping early gives it back early
	return kgo.AckRelease
}

func (w *Worker) pause(delivery int32) time.Duration {
	b := retry.Backoff{Min: cmp.Or(w.Pause, time.Second), Max: maxPause}
	for range delivery - 1 {
		b.Next()
	}
	return b.Next()
}

// report tells the coordinator about a task. A report that is lost costs time only, so the worker goes on.
func (w *Worker) report(ctx context.Context, franz *kgo.Client, record *kgo.Record, e event, why error) {
	r := report{Task: string(record.Value), Event: e, Worker: w.Name, Delivery: record.DeliveryCount()}
	if why != nil {
		r.Error = why.Error()
	}
	if err := franz.ProduceSync(ctx, w.record(r)).FirstErr(); err != nil && ctx.Err() == nil {
		w.Log.Warn("a report of a task was not sent", "task", r.Task, "event", e, "error", err)
	}
}

// renew keeps the lock of a record until the returned function is called, which waits for the last renewal.
func (w *Worker) renew(ctx context.Context, franz *kgo.Client, record *kgo.Record) (stop func()) {
	ticking, cancel := context.WithCancel(ctx)
	interval := renewEvery
	if deadline := record.AcquisitionDeadline(); !deadline.IsZero() {
		interval = max(10*time.Millisecond, min(interval, time.Until(deadline)/3))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for retry.Sleep(ticking, interval) == nil {
			record.Ack(kgo.AckRenew)
			sent, cancel := context.WithTimeout(ctx, goodbye)
			_ = franz.FlushAcks(sent) // the callback has the broker's answer
			cancel()
		}
	}()
	return func() { cancel(); <-ended }
}
