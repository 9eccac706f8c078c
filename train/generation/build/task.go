package build

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"giantstream/internal/seal"
	"giantstream/internal/tasks"
	"giantstream/internal/tempfile"
	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/fit"
)

var objectTable = crc32.MakeTable(crc32.Castagnoli)

// task is a task that is being done.
type task struct {
	*build
	tasks.Task
	outputs map[string]output
	stats   any
	alone   bool // it is the only task of its stage
}

// taskResources are those of the task. Its progress is shown if it is the only one of its stage.
func (t *task) taskResources() fit.Resources {
	r := t.Resources
	r.Log = r.Log.With("task", t.Task.String())
	if r.Progress = train.OrDiscard(r.Progress); !t.alone {
		r.Progress = train.OrDiscard(nil)
	}
	return r
}

// put stores what write produces as an output under key, "" for a place among the task's own.
func (t *task) put(ctx context.Context, name, key string, write func(io.Writer) error) error {
	if key == "" {
		key = folder(t.Task) + name
	}
	o, err := putObject(ctx, t.Store, key, write)
	if err == nil {
		t.outputs[name] = o
	}
	return err
}

// putObject stores what write produces, through a temporary file: a store needs an object's size beforehand.
func putObject(ctx context.Context, store sink.Store, key string, write func(io.Writer) error) (o output, err error) {
	f, err := tempfile.Create("giantstream-task-*")
	if err != nil {
		return o, err
	}
	defer f.Close()
	sum := crc32.New(objectTable)
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
	return output{Key: key, Bytes: size, CRC32C: sum.Sum32()}, store.Put(ctx, key, f.File, size)
}

// newSections returns a writer of n sections that are kept in memory up to an eighth of the limit.
func (t *task) newSections(n int) *sections.Writer {
	return sections.NewWriter(n, int(t.MemoryLimit/8))
}

// putSections stores an object of sections.
func (t *task) putSections(ctx context.Context, name string, s *sections.Writer) error {
	if s.Small() {
		var b bytes.Buffer
		if err := s.WriteObject(&b); err != nil {
			return err
		}
		key := folder(t.Task) + name
		t.outputs[name] = output{Key: key, Bytes: int64(b.Len()), CRC32C: crc32.Checksum(b.Bytes(), objectTable)}
		return sink.PutBytes(ctx, t.Store, key, b.Bytes())
	}
	return t.put(ctx, name, "", s.WriteObject)
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
