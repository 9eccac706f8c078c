package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"giantstream/internal/seal"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
)

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

func (d *done) folder() string { return folder(d.source) }

// isArtifact says whether an output is the generation's own, and not for other tasks.
func (d *done) isArtifact(o output) bool { return !strings.HasPrefix(o.Key, folder(d.source)) }

// parquetParts are the outputs that are the generation's own.
func (d *done) parquetParts() (all []generation.Part) {
	for _, o := range d.Outputs {
		if d.isArtifact(o) {
			all = append(all, o.part())
		}
	}
	return all
}

// done is the last object that a task writes: its outputs, and what is small.
type done struct {
	Task    string            `json:"task"`
	Outputs map[string]output `json:"outputs"`
	Stats   json.RawMessage   `json:"stats,omitempty"`

	source tasks.Task
	build  *build
}

// folder is the folder of what a task leaves for others.
func folder(t tasks.Task) string {
	return fmt.Sprintf("%s%s/%05d/", stages.TasksPrefix(t.Generation), t.Stage, t.Partition)
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
	d.source, d.build = t, b
	b.mu.Lock()
	b.done[t] = d
	b.mu.Unlock()
	return d, nil
}

// from returns what a task of another stage has left.
func (b *build) from(ctx context.Context, stage string, partition int) (*done, error) {
	return b.load(ctx, tasks.Task{Generation: b.plan.Generation, Stage: stage, Partition: partition})
}

// statsOf reads the figures that a task has left.
func statsOf[T any](ctx context.Context, b *build, stage string, partition int) (v T, err error) {
	d, err := b.from(ctx, stage, partition)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(d.Stats, &v); err != nil {
		return v, d.damaged(err)
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

// damaged is the error of an output that is not what the task must have left.
func (d *done) damaged(err error) error { return &DamagedError{d.source, err} }

// explain makes an error of reading an output one of its task.
func (d *done) explain(err error) error {
	if errors.Is(err, sink.ErrDamaged) || errors.Is(err, sink.ErrNotFound) || errors.Is(err, sections.ErrShort) ||
		generation.IsDamage(err) {
		return d.damaged(err)
	}
	return err
}

func (d *done) output(name string) (output, error) {
	o, ok := d.Outputs[name]
	if !ok {
		return o, d.damaged(fmt.Errorf("it does not name %s", name))
	}
	return o, nil
}

// openSections opens an output. Close it after use.
func (d *done) openSections(ctx context.Context, name string) (*input, error) {
	o, err := d.output(name)
	if err != nil {
		return nil, err
	}
	s, err := sections.Open(ctx, d.build.Store, o.ref(), max(d.build.plan.Partitions, fewBlocks))
	if err != nil {
		return nil, d.explain(err)
	}
	return &input{s, d}, nil
}

// readSection reads a section of an output.
func (d *done) readSection(ctx context.Context, name string, k int) ([]byte, error) {
	s, err := d.openSections(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.readSection(k)
}

// input is an open output of another task.
type input struct {
	*sections.Reader
	from *done
}

func (i *input) readSection(k int) ([]byte, error) { return i.readSectionInto(nil, k) }

func (i *input) readSectionInto(b []byte, k int) ([]byte, error) {
	b, err := i.Reader.SectionInto(b, k)
	return b, i.from.explain(err)
}

func (i *input) readStretch(k, end int) ([][]byte, error) {
	all, err := i.Reader.Stretch(k, end)
	return all, i.from.explain(err)
}

// readVerified reads an object whole, verified.
func readVerified[T any](ctx context.Context, store sink.Store, ref sink.Ref, decode func(io.Reader) (T, error)) (v T,
	err error) {
	object, err := sink.OpenVerified(ctx, store, ref)
	if err != nil {
		return v, err
	}
	defer object.Close()
	return decode(sink.Sequential(object))
}

// readArtifact reads an output whole, verified.
func readArtifact[T any](ctx context.Context, b *build, stage, name string, decode func(io.Reader) (T, error)) (v T,
	err error) {
	d, err := b.from(ctx, stage, 0)
	if err != nil {
		return v, err
	}
	o, err := d.output(name)
	if err != nil {
		return v, err
	}
	v, err = readVerified(ctx, b.Store, o.ref(), decode)
	return v, d.explain(err)
}

// openObject opens an output whole, verified.
func (d *done) openObject(ctx context.Context, name string) (sink.Object, *done, error) {
	o, err := d.output(name)
	if err != nil {
		return nil, nil, err
	}
	object, err := sink.OpenVerified(ctx, d.build.Store, o.ref())
	return object, d, d.explain(err)
}

// partsOf returns the Parquet files that the tasks of a stage have written, by their keys.
func (b *build) partsOf(ctx context.Context, stage string) (all []generation.Part, err error) {
	for p := range b.plan.Partitions {
		from, err := b.from(ctx, stage, p)
		if err != nil {
			return nil, err
		}
		all = append(all, from.parquetParts()...)
	}
	slices.SortFunc(all, func(a, b generation.Part) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// fewBlocks is no fewer than a partition has where there are as many partitions as suit the graph.
const fewBlocks = 64

// artifactKey is the key of an artifact of the generation.
func (b *build) artifactKey(name string) string { return generation.Prefix(b.plan.Generation) + name }

// removeOutputs removes what the tasks of a stage have left among them. First they count as not done: a task that still
// reads it is one that comes too late.
func removeOutputs(ctx context.Context, store sink.Store, g int64, stage string) error {
	var rest []string
	for info, err := range store.List(ctx, stages.TasksPrefix(g)+stage+"/", "") {
		if err != nil {
			return err
		}
		if !strings.HasSuffix(info.Key, doneName) {
			rest = append(rest, info.Key)
		} else if err := store.Delete(ctx, info.Key); err != nil {
			return err
		}
	}
	for _, key := range rest {
		if err := store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
