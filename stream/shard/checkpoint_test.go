package shard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/mutation"
)

// Where the store has the checkpoints of shard 0, and their files.
const (
	checkpointPrefix = "shards/0/state/checkpoints/"
	stateFilePrefix  = "shards/0/state/files/"
)

// allRows builds the row of every node in the state.
func (s *state) allRows(t testing.TB) map[string]rows.Row {
	t.Helper()
	if err := s.spill(1 << 40); err != nil {
		t.Fatal(err)
	}
	b := s.db.NewBatch()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.SeekGE([]byte{spaceHeader}); ok && it.Key()[0] == spaceHeader; ok = it.Next() {
		if err := b.Set(dirtyKey(nil, 1<<40, string(it.Key()[1:])), []byte{markDue}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(it.Close(), b.Commit(pebble.NoSync)); err != nil {
		t.Fatal(err)
	}
	out := map[string]rows.Row{}
	for row, err := range s.rows(1 << 40) {
		if err != nil {
			t.Fatal(err)
		}
		out[row.NodeID] = row
	}
	return out
}

// checkRestored loses all disks of a pipeline at rest. The store and the rest of the topics must
// give the whole graph again.
func (p *pipeline) checkRestored() {
	p.t.Helper()
	got := map[string]rows.Row{}
	for shard := range p.b.shards {
		p.disks[shard] = vfs.NewCrashableMem()
		s := p.step(shard, -1, false)
		maps.Copy(got, s.state.allRows(p.t))
		if err := s.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	sameRows(p.t, got, model(p.b.everything(), true))
}

// withCheckpoints is a pipeline of one shard with two checkpoints in its store, after 10 and after
// 20 of 30 nodes, whose disk is lost.
func withCheckpoints(t *testing.T) *pipeline {
	t.Helper()
	p := newPipeline(t, newBroker(1), 1)
	for n := 10; n <= 30; n += 10 {
		sendNodes(p.b, n-10, n)
		s := p.step(0, -1, true)
		if n < 30 {
			if err := s.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.disks[0] = p.kill(s)
	}
	p.disks[0] = vfs.NewCrashableMem()
	return p
}

// A lost disk costs the records since the newest whole checkpoint. A damaged checkpoint costs the
// records since an older one.
func TestRestore(t *testing.T) {
	newest := checkpointPrefix + "00000000000000000002.json"
	file := func(t *testing.T, p *pipeline) checkpoint.File { // that only the newest has
		docs, _, err := checkpoint.Kept(t.Context(), p.store, 0)
		if err != nil || len(docs) != 2 {
			t.Fatal(docs, err)
		}
		for _, f := range docs[1].Files {
			if !slices.ContainsFunc(docs[0].Files, func(g checkpoint.File) bool { return g.Key == f.Key }) {
				return f
			}
		}
		t.Fatal("the second checkpoint has uploaded nothing")
		return checkpoint.File{}
	}
	replace := func(t *testing.T, p *pipeline, key string, edit func([]byte) []byte) {
		data, err := sink.ReadAll(t.Context(), p.store, key)
		if err == nil {
			err = sink.PutBytes(t.Context(), p.store, key, edit(bytes.Clone(data)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, p *pipeline)
		from   int64 // where the nodes topic is read on
	}{
		{"whole", func(*testing.T, *pipeline) {}, 20},
		{"file gone", func(t *testing.T, p *pipeline) { _ = p.store.Delete(t.Context(), file(t, p).Key) }, 10},
		{"file changed", func(t *testing.T, p *pipeline) {
			replace(t, p, file(t, p).Key, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, 10},
		{"file cut", func(t *testing.T, p *pipeline) {
			replace(t, p, file(t, p).Key, func(b []byte) []byte { return b[:len(b)-1] })
		}, 10},
		{"document gone", func(t *testing.T, p *pipeline) { _ = p.store.Delete(t.Context(), newest) }, 10},
		{"document cut", func(t *testing.T, p *pipeline) {
			replace(t, p, newest, func(b []byte) []byte { return b[:len(b)/2] })
		}, 10},
		{"document of another release", func(t *testing.T, p *pipeline) {
			replace(t, p, newest, edit(t, `"format": 2`, `"format": 9`))
		}, 10},
		{"state of another release", func(t *testing.T, p *pipeline) {
			replace(t, p, newest, edit(t, `"state_format": 1`, `"state_format": 9`))
		}, 10},
		{"document of another state", func(t *testing.T, p *pipeline) {
			replace(t, p, newest, edit(t, `"nodes": 20`, `"nodes": 19`))
		}, 10},
		{"of another log", func(t *testing.T, p *pipeline) {
			replace(t, p, newest, edit(t, `"test-`, `"else-`))
		}, 10},
		{"all gone", func(t *testing.T, p *pipeline) {
			_ = p.store.Delete(t.Context(), newest)
			_ = p.store.Delete(t.Context(), checkpointPrefix+"00000000000000000001.json")
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := withCheckpoints(t)
			test.damage(t, p)
			s, err := p.open(0)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // test
			if from := s.Next()[nodesTopic]; from != test.from {
				t.Errorf("reads on at %d, want %d", from, test.from)
			}
			p.consume(s, -1)
			if m := p.commit(s); m != nil {
				t.Errorf("manifest %d is committed though nothing is new", m.Seq)
			}
			sameRows(t, s.state.allRows(t), model(p.b.everything(), true))
		})
	}
}

// The checkpoint knows of a manifest that is gone. Whoever went on before it would write a second
// history.
func TestLogThatLostItsEndIsRefused(t *testing.T) {
	for _, manifests := range []int64{3, 2, 1} {
		p := withCheckpoints(t)
		for seq := manifests + 1; seq <= 3; seq++ {
			if err := p.store.Delete(t.Context(), commitlog.ManifestKey(0, seq)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := p.open(0)
		if manifests >= 2 { // the newest checkpoint stands at manifest 2
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !errors.Is(err, commitlog.ErrDamaged) || !strings.Contains(err.Error(), "has lost the end of its log") {
			t.Errorf("with %d of 3 manifests: %v", manifests, err)
		}
	}
}

// The local state and the newest checkpoint: the one that has more wins. A shard that ran elsewhere
// meanwhile has an old state here, and the topics may no longer hold the records that it lacks.
func TestRestoreReplacesOlderStateOnly(t *testing.T) {
	for _, test := range []struct {
		name   string
		behind bool
		from   int64
	}{{"older", true, 20}, {"newer", false, 30}} {
		t.Run(test.name, func(t *testing.T) {
			p := newPipeline(t, newBroker(1), 1)
			sendNodes(p.b, 0, 30)
			here := p.kill(p.step(0, 10, true))
			p.disks[0] = vfs.NewCrashableMem()
			s := p.step(0, 20, true)
			if err := s.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.consume(s, -1)
			p.commit(s)
			there := p.kill(s)
			if p.disks[0] = there; test.behind {
				p.disks[0] = here
			}
			s = p.step(0, 0, false)
			defer s.Close() //nolint:errcheck // test
			if from := s.Next()[nodesTopic]; from != test.from {
				t.Errorf("reads on at %d, want %d", from, test.from)
			}
		})
	}
}

// A worker that dies while it downloads leaves nothing that is taken for a state. A store that
// fails meanwhile is an error: the shard does not open without the checkpoint.
func TestInterruptedRestore(t *testing.T) {
	for fail := 0; ; fail++ {
		p := withCheckpoints(t)
		reads := 0
		p.store.Fail = func(op, key string) error {
			if op == "read" && strings.HasPrefix(key, stateFilePrefix) {
				if reads++; reads == fail+1 {
					return errInjected
				}
			}
			return nil
		}
		s, err := p.open(0)
		if err == nil {
			_ = s.Close()
			if fail < 3 {
				t.Errorf("only %d reads", fail)
			}
			return
		}
		if !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		p.disks[0] = p.disks[0].CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: p.rng})
		if s, err = p.open(0); err != nil {
			t.Fatal(err)
		}
		if from := s.Next()[nodesTopic]; from != 20 {
			t.Errorf("read %d failed; then it reads on at %d, want 20", fail, from)
		}
		_ = s.Close()
	}
}

// A file that the store has is not uploaded again, neither by the next checkpoint nor by the next
// worker.
func TestCheckpointUploadsWhatIsNew(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	puts := map[string]int{}
	p.store.FailAfter = func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, stateFilePrefix) {
			puts[key]++
		}
		return nil
	}
	tables := func(c *checkpoint.Document) map[string]bool {
		keys := map[string]bool{}
		for _, f := range c.Files {
			if strings.HasSuffix(f.Name, ".sst") {
				keys[f.Key] = true
			}
		}
		return keys
	}
	var before *checkpoint.Document
	for n := range 3 {
		for i := n * 4000; i < n+4000; i++ { // many in the first round, so that they take several tables
			text := make([]byte, 800)
			for j := range text {
				text[j] = byte(' ' + p.rng.IntN(90))
			}
			p.b.send(nodesTopic, int64(i),
				record{{Op: mutation.PutNode, ID: fmt.Sprintf("n%05d", i), Text: string(text)}})
		}
		p.batch = 1000

		s := p.step(0, -1, true)
		if err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Newest(t.Context(), p.store, 0)
		if err != nil || c.Seq != s.headSeq() {
			t.Fatalf("checkpoint %+v, %v; want one of manifest %d", c, err, s.headSeq())
		}
		if before != nil {
			shared := 0
			for key := range tables(before) {
				if tables(c)[key] {
					shared++
				}
			}
			if shared == 0 {
				t.Errorf("checkpoint %d shares no table with the one before", c.Number)
			}
		}
		before = c
		if n == 0 { // the second checkpoint is made by the next worker, without a new manifest
			calls := len(puts)
			if err := s.Checkpoint(t.Context()); err != nil || len(puts) != calls {
				t.Errorf("%d files were uploaded for the same checkpoint again, %v", len(puts)-calls, err)
			}
		}
		p.disks[0] = p.kill(s)
	}
	for key, n := range puts {
		if n > 1 {
			t.Errorf("%s was uploaded %d times", key, n)
		}
	}
}

// Run makes checkpoints when it is time, and when the pipeline drains. One that fails harms nothing
// and is tried again.
func TestRunMakesCheckpoints(t *testing.T) {
	for _, drain := range []bool{false, true} {
		t.Run(fmt.Sprintf("drain %t", drain), func(t *testing.T) {
			p := newPipeline(t, newBroker(1), 1)
			sendNodes(p.b, 0, 40)
			ctx, cancel := context.WithCancel(t.Context())
			failures, made := 0, make(chan struct{}, 100)
			p.store.FailAfter = func(op, key string) error {
				if op != "create" || !strings.HasPrefix(key, checkpointPrefix) {
					return nil
				}
				made <- struct{}{}
				if failures++; failures == 1 {
					return errInjected
				}
				return nil
			}
			now := time.Unix(1, 0)
			var s *Shard
			opts := p.options(0)
			opts.Clock = func() time.Time { return now }
			opts.CheckpointEvery = time.Minute
			opts.Drain = func() bool { return drain }
			s, err := Open(ctx, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // test
			feed := p.feed(s)
			turns := 0
			err = s.Run(ctx, feedFunc(func(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
				if !s.checkpoints.busy() {
					turns++
					now = now.Add(20 * time.Second) // the clock belongs to this goroutine then
				} else {
					<-s.checkpoints.running
				}
				if failures >= 2 || drain && failures >= 1 && turns > 100 || turns > 1000 {
					cancel()
				}
				if turns%10 == 0 {
					sendNodes(p.b, 40+turns, 41+turns)
				}
				return feed.Next(ctx, wait)
			}))
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if len(made) < 2 {
				t.Errorf("%d checkpoints in %d turns", len(made), turns)
			}
		})
	}
}

type feedFunc func(context.Context, time.Duration) (mutation.Batch, error)

func (f feedFunc) Next(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
	return f(ctx, wait)
}

// edit changes a document and seals it again, so that what it says is wrong and not its checksum.
func edit(t *testing.T, old, with string) func([]byte) []byte {
	return func(b []byte) []byte {
		body, sealed, err := seal.Open(b, seal.Place{})
		if err != nil || !sealed || !bytes.Contains(body, []byte(old)) {
			t.Fatalf("%s in %s: sealed %t, %v", old, b, sealed, err)
		}
		data, err := seal.JSON(json.RawMessage(bytes.ReplaceAll(body, []byte(old), []byte(with))), seal.PlaceOf(b))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}
