package shard

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
)

// uploader is a session that uploads a made-up state: files that come and go, and never change.
type uploader struct {
	*checkpointer
	fs    *vfs.MemFS
	seq   int64
	next  int
	files map[string]string
	busy  bool
}

// racers are sessions that upload and collectors that remove, each of which may be halted before
// any of its calls to the store for as long as others take to do anything.
type racers struct {
	t     *testing.T
	rng   *rand.Rand
	store *memstore.Store
	all   []*uploader
	seq   int64
	depth int
	made  int
	hurt  error
}

// join adds a session. It continues the newest checkpoint, or the state of an older session, as
// workers do whose disk was lost, or was not.
func (r *racers) join() {
	fs := vfs.NewMem()
	u := &uploader{fs: fs, files: map[string]string{}, seq: r.seq, next: 1000 * len(r.all)}
	u.checkpointer = newCheckpointer(Options{Store: r.store, fs: fs, Shard: 0, transfers: 1,
		Log: discardLog(), Clock: func() time.Time { return time.Unix(1, 0) }}, fmt.Sprintf("s%d", len(r.all)))
	older := r.all
	r.all = append(r.all, u)
	if docs, _, err := checkpoint.Kept(r.t.Context(), r.store, 0); err == nil && len(docs) > 0 &&
		r.rng.IntN(2) == 0 {
		for _, f := range docs[len(docs)-1].Files {
			if data, err := sink.ReadAll(r.t.Context(), r.store, f.Key); err == nil {
				u.files[f.Name] = string(data)
			}
		}
	} else if len(older) > 0 {
		maps.Copy(u.files, older[r.rng.IntN(len(older))].files)
	}
}

// turn does one thing: a session joins, uploads or collects.
func (r *racers) turn() {
	r.depth++
	defer func() { r.depth-- }()
	switch {
	case r.rng.IntN(8) == 0:
		r.join()
	case r.rng.IntN(3) == 0:
		if _, err := commitlog.NewOrphans(r.store, 0).Remove(r.t.Context()); err != nil && !errors.Is(err, sink.ErrNotFound) {
			r.hurt = err
		}
	default:
		r.upload(r.all[r.rng.IntN(len(r.all))])
	}
}

func (r *racers) upload(u *uploader) {
	if u.busy {
		return // one upload at a time in a session
	}
	u.busy = true
	defer func() { u.busy = false }()
	if r.rng.IntN(2) == 0 { // it owns the shard and commits
		r.seq++
		u.seq = r.seq
	}
	for name := range u.files {
		if r.rng.IntN(4) == 0 {
			delete(u.files, name)
		}
	}
	for range 1 + r.rng.IntN(3) {
		u.next++
		name := fmt.Sprintf("%06d.sst", u.next)
		u.files[name] = fmt.Sprintf("%s of %s", name, u.session)
	}
	dir := fmt.Sprint("snapshot", u.next)
	if err := u.fs.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	for name, data := range u.files {
		f, err := u.fs.Create(filepath.Join(dir, name), vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte(data))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	doc := &checkpoint.Document{State: stateFormat, Seq: u.seq, Writer: u.session}
	if u.seq == 0 {
		return
	}
	switch _, err := u.checkpointer.upload(r.t.Context(), dir, doc); {
	case err == nil:
		r.made++
	case !errors.Is(err, sink.ErrExists) && !errors.Is(err, errInjected):
		r.hurt = err
	}
}

// whole says what the two newest checkpoints lack.
func (r *racers) whole() error {
	docs, _, err := checkpoint.Kept(r.t.Context(), r.store, 0)
	if err != nil {
		return err
	}
	for _, c := range docs {
		for _, f := range c.Files {
			data, err := sink.ReadAll(r.t.Context(), r.store, f.Key)
			if err != nil {
				return fmt.Errorf("checkpoint %d of %s: %w", c.Number, c.Writer, err)
			}
			if int64(len(data)) != f.Bytes || string(data[:len(f.Name)]) != f.Name {
				return fmt.Errorf("checkpoint %d: %s holds %q", c.Number, f.Key, data)
			}
		}
	}
	if len(docs) == 2 && docs[0].Seq >= docs[1].Seq {
		return fmt.Errorf("checkpoint %d stands at manifest %d, %d at %d", docs[0].Number, docs[0].Seq, docs[1].Number,
			docs[1].Seq)
	}
	return nil
}

// Whichever sessions upload and collect, zombies of any age included: the two newest checkpoints
// are whole at any moment.
func TestCheckpointsOfManySessions(t *testing.T) {
	race.SkipComputing(t) // the sessions take turns in one goroutine
	made := 0
	for seed := range uint64(150) {
		r := &racers{t: t, rng: rand.New(rand.NewPCG(seed, 8)), store: &memstore.Store{}}
		checking := false
		r.store.Fail = func(string, string) error {
			if checking {
				return nil
			}
			checking = true
			err := r.whole()
			checking = false
			if err != nil && r.hurt == nil {
				r.hurt = err
			}
			if r.rng.IntN(60) == 0 {
				return errInjected
			}
			for r.depth < 4 && r.hurt == nil && r.rng.IntN(5) == 0 { // halted, while others continue
				for n := r.rng.IntN(4); n >= 0; n-- {
					r.turn()
				}
			}
			return nil
		}
		r.join()
		for n := 0; n < 40 && r.hurt == nil; n++ {
			r.turn()
		}
		r.store.Fail = nil
		if r.hurt == nil {
			r.hurt = r.whole()
		}
		if r.hurt != nil && !errors.Is(r.hurt, errInjected) {
			t.Fatalf("seed %d: %v", seed, r.hurt)
		}
		made += r.made
	}
	if made < 1000 {
		t.Errorf("only %d checkpoints", made)
	}
	t.Logf("%d checkpoints", made)
}
