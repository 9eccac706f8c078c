package shard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

// Directories beside the state directory, which belong to the holder of the state's lock.
const (
	snapshotSuffix = ".checkpoint" // hard links of a state that is being uploaded
	restoreSuffix  = ".restoring"  // a state that is being downloaded
)

// fetchFile is downloadFile from the store.
func (o *Options) fetchFile(ctx context.Context, path string, f checkpoint.File,
	progress *transferProgress) (err error) {
	object, err := o.Store.Open(ctx, f.Key)
	if errors.Is(err, sink.ErrNotFound) {
		return fmt.Errorf("%w: %w", checkpoint.ErrBad, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	if object.Size() != f.Bytes {
		return fmt.Errorf("%w: %s has %d bytes instead of %d",
			checkpoint.ErrBad, f.Key, object.Size(), f.Bytes)
	}
	out, err := o.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("write the restored state: %w", cmp.Or(engine.FileFailure(err), err))
	}
	sum, err := copyObject(localFile{out}, object, progress)
	if err == nil {
		err = localFile{out}.sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("restore %s from %s: %w", path, f.Key, err)
	}
	if sum != sumOf(&f).sha256 {
		return fmt.Errorf("%w: %s has other content than when it was stored", checkpoint.ErrBad, f.Key)
	}
	return nil
}

// copyChunk is how many bytes are read from the store at once.
const copyChunk = 4 << 20

func copyObject(w io.Writer, object sink.Object, progress *transferProgress) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	buf := make([]byte, min(copyChunk, max(1, object.Size())))
	for at := int64(0); at < object.Size(); {
		n, err := object.ReadAt(buf[:min(int64(len(buf)), object.Size()-at)], at)
		if n == 0 && err != nil {
			return sum, err
		}
		h.Write(buf[:n])
		if _, err := w.Write(buf[:n]); err != nil {
			return sum, err
		}
		at += int64(n)
		progress.add(int64(n))
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// transferProgress logs every tenth of a large transfer.
type transferProgress struct {
	log   *slog.Logger
	total int64
	done  atomic.Int64
}

func (p *transferProgress) add(n int64) {
	after := p.done.Add(n)
	if tenth := 10 * after / p.total; p.total > 64<<20 && tenth > 10*(after-n)/p.total {
		p.log.Info("restoring the state", "percent", 10*tenth, "bytes", after)
	}
}

// sumOf is the content that a checkpoint says of a file.
func sumOf(f *checkpoint.File) (s fileSum) {
	s.bytes = f.Bytes
	_, _ = hex.Decode(s.sha256[:], []byte(f.SHA256)) // checked when it was read
	return s
}

// fileSum identifies the content of a file.
type fileSum struct {
	bytes  int64
	sha256 [sha256.Size]byte
}

// localFile is a file of the restored state. Its errors say what they mean for the state, so that a
// full disk is not taken for a bad checkpoint.
type localFile struct{ vfs.File }

func (f localFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, cmp.Or(engine.FileFailure(err), err)
}

func (f localFile) sync() error {
	err := f.Sync()
	return cmp.Or(engine.FileFailure(err), err)
}

// localObject is a file as an object of a store.
type localObject struct {
	vfs.File
	size int64
}

// Size implements sink.Object.
func (o localObject) Size() int64 { return o.size }

// cancelled ends writing when a context ends.
type cancelled struct {
	ctx context.Context //nolint:containedctx // lives as long as the copy
	io.Writer
}

func (c cancelled) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Writer.Write(p)
}
