package encoders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"giantstream/sink"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/devices"
)

// bertName is the folder of a BERT's model directory.
const bertName = "bert"

// poolings are the names of the poolings.
var poolings = map[string]compute.Pooling{"mean": compute.Mean, "cls": compute.First}

// Pooling returns the pooling of that name, "mean" or "cls".
func Pooling(name string) (compute.Pooling, error) {
	p, ok := poolings[name]
	if !ok {
		return 0, fmt.Errorf("%w: pooling %q; there are mean and cls", ErrUnknown, name)
	}
	return p, nil
}

// saveBERT writes the model directory, which Hugging Face's from_pretrained
// opens as it is.
func saveBERT(ctx context.Context, store sink.Store, prefix string, e *bert.Encoder) (*BERT, error) {
	files, err := e.Files()
	if err != nil {
		return nil, err
	}
	o := e.Options()
	c := &BERT{MaxTokens: o.MaxTokens, Files: map[string]File{}}
	for name, p := range poolings {
		if p == o.Pooling {
			c.Pooling = name
		}
	}
	for _, f := range files {
		if c.Files[f.Name], err = put(ctx, store, prefix+"/"+bertName+"/"+f.Name, f, f.Size); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func loadBERT(ctx context.Context, store sink.Store, prefix string, c *BERT, device compute.Backend) (*bert.Encoder,
	error) {
	pooling, err := Pooling(c.Pooling)
	if err != nil {
		return nil, err
	}
	e, err := bert.Open(&folder{ctx, store, prefix, c.Files}, devices.OrCPU(device),
		bert.Options{Pooling: pooling, MaxTokens: c.MaxTokens})
	if errors.Is(err, bert.ErrInvalid) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("encoder %s: %w", prefix, err)
	}
	return e, nil
}

// folder is a model directory in the store, as an fs.FS. It has the files that the configuration
// names, and checks their sizes and checksums.
type folder struct {
	ctx    context.Context //nolint:containedctx // fs.FS has none
	store  sink.Store
	prefix string
	files  map[string]File
}

func (d *folder) Open(name string) (fs.File, error) {
	want, ok := d.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	object, err := openVerified(d.ctx, d.store, d.prefix, bertName+"/"+name, want)
	if err != nil {
		return nil, err
	}
	return &objectFile{Object: object, SectionReader: io.NewSectionReader(object, 0, object.Size()),
		name: path.Base(name)}, nil
}

// objectFile is an object as a file of an fs.FS.
type objectFile struct {
	sink.Object
	*io.SectionReader
	name string
}

func (f *objectFile) ReadAt(p []byte, off int64) (int, error) { return f.Object.ReadAt(p, off) }
func (f *objectFile) Size() int64                             { return f.Object.Size() }
func (f *objectFile) Stat() (fs.FileInfo, error)              { return objectInfo{f.name, f.Size()}, nil }

// objectInfo is what is known of an object.
type objectInfo struct {
	name string
	size int64
}

func (i objectInfo) Name() string     { return i.name }
func (i objectInfo) Size() int64      { return i.size }
func (objectInfo) Mode() fs.FileMode  { return 0o444 }
func (objectInfo) ModTime() time.Time { return time.Time{} }
func (objectInfo) IsDir() bool        { return false }
func (objectInfo) Sys() any           { return nil }
