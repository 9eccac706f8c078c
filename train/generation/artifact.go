package generation

import (
	"context"
	"fmt"
	"io"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
)

// Names of the artifacts below generations/<g>/.
const (
	VectorizerName = "vectorizer"
	ProjectionName = "projection"
	TreeName       = "tree"
	LabelsName     = "labels.parquet"
	// EncoderName is the folder of the encoder's files.
	EncoderName = "encoder"
	// TasksFolder has what the tasks of a build exchange, and TasksPlan how it is divided. They are no part of
	// a generation.
	TasksFolder = "tasks/"
	TasksPlan   = TasksFolder + "plan.json"
)

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
