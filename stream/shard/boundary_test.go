package shard

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// A worker is frozen before it creates a manifest, others go on, the log is folded beyond that manifest, and the worker
// continues: its number is free, and yet it has not committed. The state that it leaves is no better: the log cannot be
// compared with it any more, so a checkpoint takes its place.
func TestRemovedNumberIsNotWonAgain(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 200)
	late := p.step(0, 10, true) // manifest 1
	p.consume(late, 10)
	diskOfLate := p.disks[0]

	p.disks[0] = vfs.NewCrashableMem()
	s := p.step(0, 10, false)
	for range 150 {
		p.consume(s, 1)
		p.commit(s)
	}
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := s.headSeq()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: p.store})
	_, err := c.Merge(t.Context())
	if err == nil {
		_, err = c.Fold(t.Context(), commitlog.FoldOptions{Keep: head})
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := commitlog.ReadBoundary(t.Context(), p.store, 0)
	if err != nil || b.Seq != 128 {
		t.Fatalf("boundary %+v, %v", b, err)
	}
	if _, err := sink.ReadAll(t.Context(), p.store, commitlog.ManifestKey(0, 2)); !errors.Is(err, sink.ErrNotFound) {
		t.Fatalf("manifest 2: %v", err)
	}

	_, err = late.Commit(context.Background())
	if !errors.Is(err, ErrFenced) || !errors.Is(err, commitlog.ErrRemoved) {
		t.Errorf("the late worker: %v, want ErrFenced", err)
	}
	if _, err := sink.ReadAll(t.Context(), p.store, commitlog.ManifestKey(0, 2)); err != nil {
		t.Errorf("its manifest was to be created: %v", err)
	}
	_ = late.Close()

	p.disks[0] = diskOfLate
	s = p.step(0, -1, true)
	defer s.Close() //nolint:errcheck // test
	if s.headSeq() != head+1 {
		t.Errorf("the log ends at %d, want %d", s.headSeq(), head+1)
	}
	sameRows(t, p.newest(), model(p.b.everything(), true))
}

// A state that cannot be compared with the log is refused if there is no usable checkpoint, and the message says what
// to do.
func TestStateBehindTheBoundaryIsRefused(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 200)
	if err := p.step(0, 10, true).Close(); err != nil {
		t.Fatal(err)
	}
	disk := p.disks[0]
	p.disks[0] = vfs.NewCrashableMem()
	s := p.step(0, 10, false)
	for range 150 {
		p.consume(s, 1)
		p.commit(s)
	}
	if err := errors.Join(s.Checkpoint(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: p.store})
	_, err := c.Merge(t.Context())
	if err == nil {
		_, err = c.Fold(t.Context(), commitlog.FoldOptions{Keep: 150})
	}
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range p.store.List(t.Context(), "shards/0/state/files/", "") {
		if err == nil {
			err = p.store.Delete(t.Context(), info.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.disks[0] = disk
	if _, err = p.open(0); !errors.Is(err, commitlog.ErrRemoved) {
		t.Fatalf("opened: %v", err)
	}
	p.disks[0] = vfs.NewCrashableMem() // what the message says
	s = p.step(0, -1, true)
	defer s.Close() //nolint:errcheck // test
	sameRows(t, p.newest(), model(p.b.everything(), true))
}
