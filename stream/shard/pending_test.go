package shard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/internal/race"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// Windows that are kept in memory and windows that are written on the way are committed as the same
// objects, byte for byte, and leave the same state.
func TestMemoryOfWindowsDoesNotShow(t *testing.T) {
	race.SkipComputing(t)
	type outcome struct {
		objects []string
		nodes   int64
		edges   int64
	}
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			source := newBroker(1)
			fill(source, rand.New(rand.NewPCG(seed, 4)), 300, 8)
			var want outcome
			for _, limit := range windowLimits {
				b := newBroker(1)
				for topic, log := range source.logs[0] {
					b.logs[0][topic] = append([]record{}, log...)
				}
				p := newPipeline(t, b, seed)
				p.cache.window.limit, p.window.Changes = limit, 5
				p.drain(0)
				var got outcome
				for m, err := range commitlog.Manifests(context.Background(), p.store, 0, 0) {
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range m.Objects {
						got.objects = append(got.objects, fmt.Sprint(m.Seq, m.Next, o.Rows, o.Bytes, o.Checksum))
					}
					got.nodes, got.edges = m.Nodes, m.Edges
				}
				if s := p.step(0, 0, false); true {
					sameRows(t, s.state.allRows(t), model(b.everything(), true))
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if limit == windowMemoryBytes {
					want = got
				} else if !reflect.DeepEqual(got, want) {
					t.Errorf("with %d bytes for windows:\n got %v\nwant %v", limit, got, want)
				}
				if used := p.cache.window.used.Load(); used != 0 {
					t.Errorf("%d bytes are taken by shards that are closed", used)
				}
			}
		})
	}
}

// A shard that dies between its manifest and its state reads the window's records again, and
// commits none of them twice.
func TestKilledBetweenManifestAndState(t *testing.T) {
	for _, limit := range windowLimits {
		t.Run(fmt.Sprintf("memory %d", limit), func(t *testing.T) {
			p := newPipeline(t, newBroker(1), 0)
			p.cache.window.limit = limit
			sendNodes(p.b, 0, 10)
			p.b.send(edgesTopic, 1, record{{Op: mutation.PutEdge, ID: "n000", Other: "n001"}})
			s := p.step(0, -1, true)
			p.consume(s, -1) // the mirror
			sendNodes(p.b, 10, 20)
			p.b.send(edgesTopic, 1, record{{Op: mutation.PutEdge, ID: "n002", Other: "n001"}})
			p.consume(s, -1)
			refuse := func(string, string) error { return errInjected }
			p.store.FailAfter = func(op, _ string) error {
				if op == "create" {
					p.store.Fail = refuse // the answer is lost, so the shard does not know that the manifest exists
					return errInjected
				}
				return nil
			}
			if _, err := s.Commit(context.Background()); !errors.Is(err, errInjected) {
				t.Fatalf("commit gave %v", err)
			}
			p.store.Fail, p.store.FailAfter = nil, nil
			p.disks[0] = p.kill(s)
			head, err := commitlog.Head(context.Background(), p.store, 0)
			if err != nil || head == nil {
				t.Fatal(head, err)
			}

			s = p.step(0, -1, false)
			defer s.Close() //nolint:errcheck // test
			if m := p.commit(s); m == nil || m.Seq != head.Seq+1 || m.Rows > 1 {
				t.Errorf("after manifest %d with %d rows, the next is %+v; want at most the mirrored edge",
					head.Seq, head.Rows, m)
			}
			p.consume(s, -1)
			p.commit(s)
			sameRows(t, p.newest(), model(p.b.everything(), true))
			p.checkLog()
		})
	}
}

// A state of a release whose engine kept a log is taken up with what is in the log only.
func TestStateWithLog(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebble.Open("state", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	err = errors.Join(
		setMeta(b, &meta{Format: stateFormat, Pipeline: "test", Shards: 1, Applied: map[string]int64{nodesTopic: 7}}),
		b.Commit(pebble.Sync), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was taken up stays
		s, err := (&Options{fs: fs, Log: discardLog(), grace: time.Second}).openState(t.Context(), "state",
			meta{Pipeline: "test", Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.meta.Applied[nodesTopic]; got != 7 {
			t.Errorf("applied is %d, want 7", got)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}
