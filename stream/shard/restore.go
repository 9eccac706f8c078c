package shard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

// restore replaces the local state by the newest whole checkpoint, if the state lacks a record that
// the checkpoint has. It returns the open state, which is st if nothing was replaced. With an
// error, no state is open.
//
// numbers are the checkpoints from before head was read, and commitlog.Head has compared them with
// the head, so none of them stands beyond it.
func restore(ctx context.Context, o Options, st *state, head *commitlog.Manifest, numbers []int64) (*state, error) {
	// A crash may have left these. The state is locked, so no other process uses them.
	if err := errors.Join(o.fs.RemoveAll(o.Dir+restoreSuffix), o.fs.RemoveAll(o.Dir+snapshotSuffix)); err != nil {
		err = fmt.Errorf("remove left-over copies of the state of shard %d: %w", o.Shard, err)
		return nil, errors.Join(err, st.close())
	}
	boundary, err := commitlog.ReadBoundary(ctx, o.Store, o.Shard)
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	// The log cannot say any more who wrote the manifest that an old state has seen last. Both checkpoints that
	// are kept stand behind the boundary.
	old := st.meta.Committed > 0 && st.meta.Committed <= boundary.Seq
	for _, number := range slices.Backward(numbers) {
		doc, err := checkpoint.Read(ctx, o.Store, o.Shard, number)
		if err == nil && !old && st.covers(doc.Applied) {
			return st, nil
		}
		if err == nil {
			err = o.fetchState(ctx, st.owner(), doc, head)
		}
		switch {
		case err == nil:
			return o.adopt(ctx, st)
		case ctx.Err() != nil || !errors.Is(err, checkpoint.ErrBad):
			return nil, errors.Join(fmt.Errorf("restore the state of shard %d: %w", o.Shard, err), st.close())
		}
		o.Log.Warn("state checkpoint cannot be used; trying an older one, or else the topics are read again",
			"number", number, "error", err)
	}
	return st, nil
}

// covers reports whether all records below the offsets are in the state.
func (s *state) covers(offsets map[string]int64) bool {
	for topic, offset := range offsets {
		if s.meta.Applied[topic] < offset {
			return false
		}
	}
	return true
}

// owner returns the meta that openState expects.
func (s *state) owner() meta {
	m := s.meta
	return meta{Pipeline: m.Pipeline, Shard: m.Shard, Shards: m.Shards, Undirected: m.Undirected}
}

// fetchState downloads a checkpoint beside the state directory, opens it, and compares it with its
// document. checkpoint.ErrBad if it does not open or differs.
func (o *Options) fetchState(ctx context.Context, owner meta, doc *checkpoint.Document,
	head *commitlog.Manifest) error {
	if doc.State != stateFormat {
		return fmt.Errorf("%w: the state has format %d, this version reads %d", checkpoint.ErrBad, doc.State,
			stateFormat)
	}
	if head == nil || doc.Seq > head.Seq { // manifests or checkpoints are being put back at this moment
		return fmt.Errorf("%w: it stands at manifest %d, beyond the end of the commit log", checkpoint.ErrBad,
			doc.Seq)
	}
	if writer, err := o.writerOf(ctx, head, doc.Seq); errors.Is(err, commitlog.ErrRemoved) {
		return fmt.Errorf("%w: %w", checkpoint.ErrBad, err)
	} else if err != nil {
		return err
	} else if writer != doc.Writer {
		return fmt.Errorf("%w: it knows manifest %d from %q, but %q wrote it", checkpoint.ErrBad, doc.Seq,
			doc.Writer, writer)
	}
	dir := o.Dir + restoreSuffix
	began := o.Clock()
	o.Log.Info("restoring the state from its checkpoint", "number", doc.Number, "seq", doc.Seq, "head", head.Seq,
		"files", len(doc.Files), "bytes", doc.Bytes())
	if err := o.download(ctx, dir, doc); err != nil {
		return err
	}
	st, err := o.openState(ctx, dir, owner)
	if errors.Is(err, engine.ErrDamaged) {
		return fmt.Errorf("%w: %w", checkpoint.ErrBad, err)
	}
	if err != nil {
		return err
	}
	have := st.meta
	if err := st.close(); err != nil {
		return fmt.Errorf("%w: %w", checkpoint.ErrBad, err)
	}
	if err := have.agrees(doc); err != nil {
		return fmt.Errorf("%w: %w", checkpoint.ErrBad, err)
	}
	o.Log.Info("state restored", "seq", doc.Seq, "nodes", have.Nodes, "edges", have.Edges, "took", o.Clock().Sub(began))
	return nil
}

// download fetches the files of a checkpoint into a new directory.
func (o *Options) download(ctx context.Context, dir string, doc *checkpoint.Document) error {
	if err := errors.Join(o.fs.RemoveAll(dir), o.fs.MkdirAll(dir, engine.DirMode)); err != nil {
		return fmt.Errorf("prepare %s: %w", dir, err)
	}
	if err := engine.CheckSpace(o.fs, dir, uint64(doc.Bytes())+stateReserveBytes); err != nil {
		return err
	}
	progress := transferProgress{log: o.Log, total: doc.Bytes()}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(o.transfers)
	for _, f := range doc.Files {
		g.Go(func() error { return o.downloadFile(ctx, filepath.Join(dir, f.Name), f, &progress) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return engine.SyncDir(o.fs, dir)
}

// downloadFile fetches one file; checkpoint.ErrBad if its object is missing or not what the document
// says.
func (o *Options) downloadFile(ctx context.Context, path string, f checkpoint.File,
	progress *transferProgress) error {
	if taken, err := o.fromStandby(ctx, path, f, progress); taken || err != nil {
		return err
	}
	return o.fetchFile(ctx, path, f, progress)
}

// adopt replaces the local state by the one that fetchState has downloaded. A crash meanwhile
// leaves no state, the old one or the new one.
func (o *Options) adopt(ctx context.Context, old *state) (*state, error) {
	owner := old.owner()
	err := old.close()
	if err == nil {
		err = o.fs.RemoveAll(o.Dir)
	}
	if err == nil {
		err = o.fs.Rename(o.Dir+restoreSuffix, o.Dir)
	}
	if err == nil {
		err = engine.SyncDir(o.fs, o.fs.PathDir(o.Dir))
	}
	if err != nil {
		return nil, fmt.Errorf("replace the state in %s: %w", o.Dir, err)
	}
	return o.openState(ctx, o.Dir, owner)
}

// writerOf returns the writer of manifest seq, which is not beyond head.
func (o *Options) writerOf(ctx context.Context, head *commitlog.Manifest, seq int64) (string, error) {
	if seq == head.Seq {
		return head.Writer, nil
	}
	m, err := commitlog.ReadCommitted(ctx, o.Store, o.Shard, seq)
	if err != nil {
		return "", err
	}
	return m.Writer, nil
}
