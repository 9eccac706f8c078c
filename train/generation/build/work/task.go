package work

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"giantstream/internal/ambient"
	"giantstream/internal/seal"
	"giantstream/internal/tasks"
	"giantstream/internal/tempfile"
	"giantstream/sink"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/fit"
)

// Task is a task that is being done.
type Task struct {
	*Build
	tasks.Task
	Outputs map[string]Output
	Stats   any
	alone   bool // it is the only task of its stage
}

// TaskResources are those of the task. Its progress is shown if it is the only one of its stage.
func (t *Task) TaskResources() fit.Resources {
	r := t.Resources
	r.Log = r.Log.With("task", t.Task.String())
	if r.Progress = ambient.OrDiscard(r.Progress); !t.alone {
		r.Progress = ambient.OrDiscard(nil)
	}
	return r
}

// Put stores what write produces as an output under key, "" for a place among the task's own.
func (t *Task) Put(ctx context.Context, name, key string, write func(io.Writer) error) error {
	if key == "" {
		key = Folder(t.Task) + name
	}
	o, err := PutObject(ctx, t.Store, key, write)
	if err == nil {
		t.Outputs[name] = o
	}
	return err
}

// PutObject stores what write produces, through a temporary file: a store needs an object's size beforehand.
func PutObject(ctx context.Context, store sink.Store, key string, write func(io.Writer) error) (o Output, err error) {
	f, err := tempfile.Create("giantstream-task-*")
	if err != nil {
		return o, err
	}
	defer f.Close()
	sum := sink.NewHash()
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
	return Output{Key: key, Bytes: size, Checksum: sink.ChecksumFrom(sum)}, store.Put(ctx, key, f.File, size)
}

// NewSections returns a writer of n sections that are kept in memory up to an eighth of the limit.
func (t *Task) NewSections(n int) *sections.Writer {
	return sections.NewWriter(n, int(t.MemoryLimit/8))
}

// PutSections stores an object of sections.
func (t *Task) PutSections(ctx context.Context, name string, s *sections.Writer) error {
	if s.Small() {
		var b bytes.Buffer
		if err := s.WriteObject(&b); err != nil {
			return err
		}
		key := Folder(t.Task) + name
		t.Outputs[name] = Output{Key: key, Bytes: int64(b.Len()), Checksum: sink.ChecksumOf(b.Bytes())}
		return sink.PutBytes(ctx, t.Store, key, b.Bytes())
	}
	return t.Put(ctx, name, "", s.WriteObject)
}

// finish writes the document that makes the task done.
func (t *Task) finish(ctx context.Context) error {
	d := Done{Task: t.Task.String(), Plan: t.Plan.Token, Outputs: t.Outputs}
	if t.Stats != nil {
		data, err := json.Marshal(t.Stats)
		if err != nil {
			return err
		}
		d.Stats = data
	}
	data, err := seal.JSON(d, sink.PlaceOf(t.Store, doneKey(t.Task)))
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, t.Store, doneKey(t.Task), data)
}
