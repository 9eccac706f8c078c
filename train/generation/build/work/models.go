package work

import (
	"context"
	"io"
	"slices"
	"sync"

	"giantstream/sink"
)

// models are what several tasks of a process read whole: vectorizer, projection, tree, encoder. At most one of each is
// in memory, and only those that the tasks at hand read.
type models struct {
	mu   sync.Mutex
	held map[modelKey]*model
}

// modelKey names a model by its content, so that one that was made again is another.
type modelKey struct {
	stage, key string
	content    sink.Checksum
}

// model is read by the first task that needs it. What holds memory of a device is closed when no task uses it.
type model struct {
	mu      sync.Mutex
	value   any
	users   int
	dropped bool
}

func (m *models) find(key modelKey) *model {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		m.held = map[modelKey]*model{}
	}
	if m.held[key] == nil {
		m.held[key] = &model{}
	}
	return m.held[key]
}

// KeepModels lets go of what tasks that read these stages do not need.
func (m *models) KeepModels(stages []string) {
	m.mu.Lock()
	var gone []*model
	for key, held := range m.held {
		if !slices.Contains(stages, key.stage) {
			gone = append(gone, held)
			delete(m.held, key)
		}
	}
	m.mu.Unlock()
	for _, held := range gone {
		held.use(0, true)
	}
}

// use counts users. A model that was dropped is closed after the last.
func (m *model) use(more int, drop bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users += more
	m.dropped = m.dropped || drop
	if c, ok := m.value.(io.Closer); ok && m.dropped && m.users == 0 {
		_ = c.Close() // it was read from the store, whatever a device says
		m.value = nil
	}
}

// Share returns what load makes of an output of a stage of one task, once for all tasks of this process, until done
// is called. A load that fails counts for its caller alone.
func Share[T any](ctx context.Context, b *Build, stage, name string, load func() (T, error)) (v T, done func(),
	err error) {
	d, err := b.OutputsOf(ctx, stage, 0)
	if err != nil {
		return v, nil, err
	}
	o, err := d.Output(name)
	if err != nil {
		return v, nil, err
	}
	m := b.models.find(modelKey{stage, o.Key, o.Checksum})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.value == nil {
		if v, err = load(); err != nil {
			return v, nil, err
		}
		m.value = v
	}
	m.users++
	return m.value.(T), func() { m.use(-1, false) }, nil
}

// ShareArtifact is artifact, once for all tasks of this process.
func ShareArtifact[T any](ctx context.Context, b *Build, stage, name string, read func(io.Reader) (T, error)) (T,
	error) {
	v, _, err := Share(ctx, b, stage, name, func() (T, error) { return ReadArtifact(ctx, b, stage, name, read) })
	return v, err
}
