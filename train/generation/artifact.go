package generation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/sink"
	"giantstream/sink/tempfile"
)

// artifact returns the artifact under key if the store has it, else makes and
// stores it: the step that lets a build resume. Without a store it is made.
func artifact[T any](ctx context.Context, store sink.Store, key string, read func(io.Reader) (T, error),
	create func() (T, error), write func(T, io.Writer) error) (T, error) {
	if store == nil {
		return create()
	}
	v, err := load(ctx, store, key, read)
	if err == nil || !errors.Is(err, sink.ErrNotFound) {
		return v, err
	}
	if v, err = create(); err != nil {
		return v, err
	}
	return v, save(ctx, store, key, func(w io.Writer) error { return write(v, w) })
}

// readAhead is how much of an artifact is asked for at a time: on S3, each
// read is a request.
const readAhead = 4 << 20

// load reads the artifact under key.
func load[T any](ctx context.Context, store sink.Store, key string, read func(io.Reader) (T, error)) (v T, err error) {
	object, err := store.Open(ctx, key)
	if err != nil {
		return v, err
	}
	defer object.Close()
	v, err = read(bufio.NewReaderSize(io.NewSectionReader(object, 0, object.Size()), readAhead))
	if err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	return v, nil
}

// save stores what write produces under key, through a temporary file: stores
// want to know an object's size beforehand.
func save(ctx context.Context, store sink.Store, key string, write func(io.Writer) error) error {
	f, err := tempfile.Create("giantstream-artifact-*")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return store.Put(ctx, key, f.File, size)
}
