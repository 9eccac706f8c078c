package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

// standbyPart ends the names of files that are being fetched.
const standbyPart = ".part"

// FetchStandby brings a directory to where it has the files of a shard's newest checkpoint and no others, each
// under the last part of its object's name. Files that are there already are not fetched again, and not read. It
// returns the checkpoint, nil if there is none that this version can use, and how many bytes it has fetched.
func FetchStandby(ctx context.Context, store sink.Store, shard int, dir string, log *slog.Logger) (
	doc *checkpoint.Document, fetched int64, err error) {
	o := &Options{Shard: shard, Store: store, Standby: dir, Log: log, fs: vfs.Default, transfers: defaultTransfers}
	return o.fetchStandby(ctx)
}

func (o *Options) fetchStandby(ctx context.Context) (doc *checkpoint.Document, fetched int64, err error) {
	doc, err = checkpoint.Newest(ctx, o.Store, o.Shard)
	if err != nil || doc == nil || doc.State != stateFormat {
		return nil, 0, err
	}
	dir := o.Standby
	if err := o.fs.MkdirAll(dir, engine.DirMode); err != nil {
		return nil, 0, fmt.Errorf("prepare %s: %w", dir, err)
	}
	have, err := o.fs.List(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", dir, err)
	}
	wanted, missing := map[string]bool{}, []checkpoint.File{}
	for _, f := range doc.Files {
		name := path.Base(f.Key)
		if wanted[name] {
			continue // two files with the same content
		}
		wanted[name] = true
		if info, err := o.fs.Stat(filepath.Join(dir, name)); err != nil || info.Size() != f.Bytes {
			missing, fetched = append(missing, f), fetched+f.Bytes
		}
	}
	// What the checkpoint before has goes first, so that the disk holds little more than one.
	for _, name := range have {
		if !wanted[name] {
			if err := o.fs.RemoveAll(filepath.Join(dir, name)); err != nil {
				return nil, 0, fmt.Errorf("remove a file of an older checkpoint: %w", err)
			}
		}
	}
	if len(missing) == 0 {
		return doc, 0, nil
	}
	if err := engine.CheckSpace(o.fs, dir, uint64(fetched)+stateReserveBytes); err != nil {
		return nil, 0, err
	}
	progress := transferProgress{log: slog.New(slog.DiscardHandler), total: max(1, fetched)}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(o.transfers)
	for _, f := range missing {
		g.Go(func() error {
			to := filepath.Join(dir, path.Base(f.Key))
			if err := o.fetchFile(gctx, to+standbyPart, f, &progress); err != nil {
				return err
			}
			return o.fs.Rename(to+standbyPart, to)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, 0, fmt.Errorf("keep shard %d warm: %w", o.Shard, err)
	}
	return doc, fetched, nil
}

// fromStandby makes a file of the state of the one that FetchStandby has left, and reports whether there was one
// and it is what the document says. Files of keys and values, which never change, are linked.
func (o *Options) fromStandby(ctx context.Context, to string, f checkpoint.File,
	progress *transferProgress) (bool, error) {
	if o.Standby == "" {
		return false, nil
	}
	from := filepath.Join(o.Standby, path.Base(f.Key))
	if info, err := o.fs.Stat(from); err != nil || info.Size() != f.Bytes {
		return false, nil //nolint:nilerr // the store has it
	}
	sum, err := o.takeStandby(ctx, from, to, f, progress)
	if err == nil && sum == sumOf(&f).sha256 {
		return true, nil
	}
	if ctx.Err() != nil || errors.Is(err, engine.ErrDiskFull) {
		return false, errors.Join(ctx.Err(), err)
	}
	o.Log.Warn("a file of the standby is damaged; taking it from the store", "file", from, "error", err)
	return false, errors.Join(o.fs.RemoveAll(to), o.fs.RemoveAll(from))
}

func (o *Options) takeStandby(ctx context.Context, from, to string, f checkpoint.File,
	progress *transferProgress) (sum [32]byte, err error) {
	in, err := o.fs.Open(from)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	object := localObject{in, f.Bytes}
	if strings.HasSuffix(f.Name, ".sst") || strings.HasSuffix(f.Name, ".blob") {
		if err := o.fs.Link(from, to); err == nil {
			return copyObject(cancelled{ctx, io.Discard}, object, progress)
		}
	}
	out, err := o.fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return sum, fmt.Errorf("write the restored state: %w", err)
	}
	if sum, err = copyObject(cancelled{ctx, localFile{out}}, object, progress); err == nil {
		err = localFile{out}.sync()
	}
	return sum, errors.Join(err, out.Close())
}
