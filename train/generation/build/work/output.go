package work

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

// Output is an object that a task has written.
type Output struct {
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
	sink.Checksum
	// Rows are those of a Parquet file, Shard is whose they are.
	Rows  int64 `json:"rows,omitempty"`
	Shard int   `json:"shard,omitempty"`
}

// Ref says what to verify when the output is read.
func (o Output) Ref() sink.Ref { return sink.Ref{Key: o.Key, Bytes: o.Bytes, Checksum: o.Checksum} }

func (o Output) part() sink.Part {
	return sink.Part{Key: o.Key, Shard: o.Shard, Rows: o.Rows, Bytes: o.Bytes, Checksum: o.Checksum}
}

// Done is the last object that a task writes: its outputs, and what is small.
type Done struct {
	Task string `json:"task"`
	// Plan is the token of the plan that the task is of: one of a plan that was discarded may end late.
	Plan    string            `json:"plan"`
	Outputs map[string]Output `json:"outputs"`
	Stats   json.RawMessage   `json:"stats,omitempty"`

	source tasks.Task
	build  *Build
}

// Folder is the folder of what the task has left for others.
func (d *Done) Folder() string { return Folder(d.source) }

// IsArtifact says whether an output is the generation's own, and not for other tasks.
func (d *Done) IsArtifact(o Output) bool { return !strings.HasPrefix(o.Key, Folder(d.source)) }

// ParquetParts are the outputs of a task whose outputs are all files of Parquet: those that are the generation's own.
func (d *Done) ParquetParts() (all []sink.Part) {
	for _, o := range d.Outputs {
		if d.IsArtifact(o) {
			all = append(all, o.part())
		}
	}
	return all
}

// Folder is the folder of what a task leaves for others.
func Folder(t tasks.Task) string {
	return fmt.Sprintf("%s%s/%05d/", stages.TasksPrefix(t.Generation), t.Stage, t.Partition)
}

const doneName = "/done.json"

func doneKey(t tasks.Task) string { return strings.TrimSuffix(Folder(t), "/") + doneName }

// load returns what a task has left: MissingError if it is not done. A document that is damaged counts as none.
func (b *Build) load(ctx context.Context, t tasks.Task) (*Done, error) {
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
	d = &Done{}
	body, sealed, err := seal.Open(data, sink.PlaceOf(b.Store, doneKey(t)))
	if err != nil || !sealed || json.Unmarshal(body, d) != nil || d.Task != t.String() ||
		d.Plan != b.Plan.Token {
		return nil, &MissingError{t}
	}
	d.source, d.build = t, b
	b.mu.Lock()
	b.done[t] = d
	b.mu.Unlock()
	return d, nil
}

// OutputsOf returns what a task of another stage has left: MissingError if it is not done.
func (b *Build) OutputsOf(ctx context.Context, stage string, partition int) (*Done, error) {
	return b.load(ctx, tasks.Task{Generation: b.Plan.Generation, Stage: stage, Partition: partition})
}

// StatsOf reads the figures that a task has left.
func StatsOf[T any](ctx context.Context, b *Build, stage string, partition int) (v T, err error) {
	d, err := b.OutputsOf(ctx, stage, partition)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(d.Stats, &v); err != nil {
		return v, d.Damaged(err)
	}
	return v, nil
}

// forget makes a task one that is not done.
func (b *Build) forget(ctx context.Context, t tasks.Task) error {
	b.mu.Lock()
	delete(b.done, t)
	b.mu.Unlock()
	return b.Store.Delete(ctx, doneKey(t))
}

// Damaged is the error of an output that is not what the task must have left.
func (d *Done) Damaged(err error) error { return &DamagedError{d.source, err} }

// Explain makes an error of reading an output one of its task.
func (d *Done) Explain(err error) error {
	if errors.Is(err, sink.ErrDamaged) || errors.Is(err, sink.ErrNotFound) || errors.Is(err, sections.ErrShort) ||
		generation.IsDamage(err) {
		return d.Damaged(err)
	}
	return err
}

// Output returns an output by its name.
func (d *Done) Output(name string) (Output, error) {
	o, ok := d.Outputs[name]
	if !ok {
		return o, d.Damaged(fmt.Errorf("it does not name %s", name))
	}
	return o, nil
}

// fewBlocks is no fewer than a partition has where there are as many partitions as suit the graph.
const fewBlocks = 64

// OpenSections opens an output. Close it after use.
func (d *Done) OpenSections(ctx context.Context, name string) (*Input, error) {
	o, err := d.Output(name)
	if err != nil {
		return nil, err
	}
	s, err := sections.Open(ctx, d.build.Store, o.Ref(), max(d.build.Plan.Partitions, fewBlocks))
	if err != nil {
		return nil, d.Explain(err)
	}
	return &Input{s, d}, nil
}

// ReadSection reads a section of an output.
func (d *Done) ReadSection(ctx context.Context, name string, k int) ([]byte, error) {
	s, err := d.OpenSections(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.ReadSection(k)
}

// Input is an open output of another task.
type Input struct {
	*sections.Reader
	From *Done
}

// ReadSection reads and verifies section k.
func (i *Input) ReadSection(k int) ([]byte, error) { return i.ReadSectionInto(nil, k) }

// ReadSectionInto is ReadSection with the memory of b, if it is large enough.
func (i *Input) ReadSectionInto(b []byte, k int) ([]byte, error) {
	b, err := i.Reader.SectionInto(b, k)
	return b, i.From.Explain(err)
}

// ReadStretch reads section k and some that follow, before end, in one request.
func (i *Input) ReadStretch(k, end int) ([][]byte, error) {
	all, err := i.Reader.Stretch(k, end)
	return all, i.From.Explain(err)
}

// ReadVerified reads an object whole, verified.
func ReadVerified[T any](ctx context.Context, store sink.Store, ref sink.Ref, decode func(io.Reader) (T, error)) (v T,
	err error) {
	object, err := sink.OpenVerified(ctx, store, ref)
	if err != nil {
		return v, err
	}
	defer object.Close()
	return decode(sink.Sequential(object))
}

// ReadArtifact reads an output whole, verified.
func ReadArtifact[T any](ctx context.Context, b *Build, stage, name string, decode func(io.Reader) (T, error)) (v T,
	err error) {
	d, err := b.OutputsOf(ctx, stage, 0)
	if err != nil {
		return v, err
	}
	o, err := d.Output(name)
	if err != nil {
		return v, err
	}
	v, err = ReadVerified(ctx, b.Store, o.Ref(), decode)
	return v, d.Explain(err)
}

// OpenObject opens an output whole, verified.
func (d *Done) OpenObject(ctx context.Context, name string) (sink.Object, *Done, error) {
	o, err := d.Output(name)
	if err != nil {
		return nil, nil, err
	}
	object, err := sink.OpenVerified(ctx, d.build.Store, o.Ref())
	return object, d, d.Explain(err)
}

// PartsOf returns the Parquet files that the tasks of a stage have written, by their keys.
func (b *Build) PartsOf(ctx context.Context, stage string) (all []sink.Part, err error) {
	for p := range b.Plan.Partitions {
		from, err := b.OutputsOf(ctx, stage, p)
		if err != nil {
			return nil, err
		}
		all = append(all, from.ParquetParts()...)
	}
	slices.SortFunc(all, func(a, b sink.Part) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// ArtifactKey is the key of an artifact of the generation.
func (b *Build) ArtifactKey(name string) string { return generation.Prefix(b.Plan.Generation) + name }

// RemoveLate removes what a task has left among the tasks of its build if the build's plan is gone: others did the task
// meanwhile, and the build has ended.
func (b *Build) RemoveLate(ctx context.Context, t tasks.Task) error {
	_, err := stages.LoadPlan(ctx, b.Store, t.Generation)
	if !errors.Is(err, stages.ErrNoPlan) {
		return err
	}
	for info, err := range b.Store.List(ctx, Folder(t), "") {
		if err == nil {
			err = b.Store.Delete(ctx, info.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveOutputs removes what the tasks of a stage have left among them. First they count as not done: a task that still
// reads it is one that comes too late.
func RemoveOutputs(ctx context.Context, store sink.Store, g int64, stage string) error {
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
