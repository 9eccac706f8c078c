package generation

import (
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/internal/tempfile"
	"giantstream/sink"
)

// Names of the artifacts below generations/<g>/.
const (
	VectorizerName = "vectorizer"
	ProjectionName = "projection"
	TreeName       = "tree"
	LabelsName     = "labels.parquet"
	// TasksFolder has what the tasks of a staged build exchange, and TasksPlan how it is divided. They are no part of
	// a generation.
	TasksFolder = "tasks/"
	TasksPlan   = TasksFolder + "plan.json"
)

// artifact returns the artifact under key if the store has it whole, else makes and stores it. This lets
// a build resume, also from an artifact that was damaged since.
func artifact[T any](ctx context.Context, store sink.Store, key string, read func(io.Reader) (T, error),
	create func() (T, error), write func(T, io.Writer) error) (T, error) {
	v, err := load(ctx, store, key, read)
	if err == nil || !errors.Is(err, sink.ErrNotFound) && !IsDamage(err) {
		return v, err
	}
	if v, err = create(); err != nil {
		return v, err
	}
	return v, save(ctx, store, key, func(w io.Writer) error { return write(v, w) })
}

// load reads the artifact under key.
func load[T any](ctx context.Context, store sink.Store, key string, read func(io.Reader) (T, error)) (v T, err error) {
	object, err := store.Open(ctx, key)
	if err != nil {
		return v, err
	}
	return readFrom(object, key, read)
}

// loadOf reads an artifact of a complete generation, verified.
func loadOf[T any](ctx context.Context, store sink.Store, doc *Doc, name string, read func(io.Reader) (T, error)) (v T,
	err error) {
	object, err := doc.open(ctx, store, name)
	if err != nil {
		return v, err
	}
	return readFrom(object, Prefix(doc.Generation)+name, read)
}

func readFrom[T any](object sink.Object, key string, read func(io.Reader) (T, error)) (v T, err error) {
	defer object.Close()
	v, err = read(sink.Sequential(object))
	if err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	return v, nil
}

// save stores what write produces under key. It goes through a temporary file, since a store needs
// an object's size beforehand.
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

// loadArtifacts reads what serving needs of a generation's artifacts.
func loadArtifacts(ctx context.Context, store sink.Store, doc *Doc) (v *tfidf.Model, p *projection.Projection,
	t *labeltree.Tree, err error) {
	if v, err = loadOf(ctx, store, doc, VectorizerName, tfidf.Read); err != nil {
		return nil, nil, nil, err
	}
	if p, err = loadOf(ctx, store, doc, ProjectionName, projection.Read); err != nil {
		return nil, nil, nil, err
	}
	t, err = loadOf(ctx, store, doc, TreeName, labeltree.Read)
	return v, p, t, err
}
