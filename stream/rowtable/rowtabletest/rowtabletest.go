// Package rowtabletest has the commit logs that tests of tables of rows follow.
package rowtabletest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
)

// Pipeline writes a commit log, and knows what it shows.
type Pipeline struct {
	Store  sink.Store
	Shards int

	rnd *rand.Rand
	// past are the live rows of each shard after each manifest.
	past []map[int64]map[string]rows.Committed
	head []int64

	checkpoints int64
	// Folded is how many manifests Fold has removed.
	Folded int
}

// New begins a log in an empty store.
func New(t *testing.T, store sink.Store, rnd *rand.Rand, shards int) *Pipeline {
	t.Helper()
	p := &Pipeline{Store: store, Shards: shards, rnd: rnd, head: make([]int64, shards)}
	for range shards {
		p.past = append(p.past, map[int64]map[string]rows.Committed{0: {}})
	}
	err := commitlog.CreateIdentity(t.Context(), p.Store, commitlog.Identity{Format: 2, Name: "p", Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Commit commits a random window of a shard.
func (p *Pipeline) Commit(t *testing.T, shard int) {
	t.Helper()
	seq := p.head[shard] + 1
	now, ids := maps.Clone(p.past[shard][seq-1]), map[string]bool{}
	for range p.rnd.IntN(12) {
		ids[fmt.Sprintf("s%d-n%02d", shard, p.rnd.IntN(30))] = true
	}
	var window []rows.Row
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		r := rows.Row{NodeID: id, EventTime: seq, Text: fmt.Sprintf("%s as of %d", id, seq),
			Class: []string{"", "c"}[p.rnd.IntN(2)]}
		for l := range p.rnd.IntN(3) {
			link := rows.Link{Weight: 1, Plain: true}
			if p.rnd.IntN(2) == 0 {
				link = rows.Link{Kind: []string{"", "also_bought"}[p.rnd.IntN(2)], Weight: 1.5, Time: seq}
			}
			r.AddLabel(fmt.Sprint("l", l), link)
		}
		if p.rnd.IntN(4) == 0 {
			r = rows.Row{NodeID: id, EventTime: seq, Deleted: true}
		}
		window = append(window, r)
		if delete(now, id); !r.Deleted {
			now[id] = rows.Committed{Row: r, Seq: seq}
		}
	}
	objects, n, err := commitlog.WriteObjects(t.Context(), p.Store, rows.Nodes, func() string {
		return commitlog.RowKey(shard, seq, "session", 0)
	}, 0, rows.WriteOptions{}, func(yield func(rows.Row, error) bool) {
		for _, r := range window {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	head, err := commitlog.Head(t.Context(), p.Store, shard)
	if err != nil {
		t.Fatal(err)
	}
	m := commitlog.Manifest{Format: commitlog.ManifestFormat, Shard: shard, Seq: seq, Objects: objects, Rows: n,
		Next: map[string]int64{"nodes": 10 * seq}, Created: time.Unix(seq, 0)}
	m.Follow(head)
	data, err := m.Encode(p.Store.Pipeline())
	if err == nil {
		err = p.Store.Create(t.Context(), commitlog.ManifestKey(shard, seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.head[shard], p.past[shard][seq] = seq, now
}

// Compact merges windows, and removes what was merged, so that a follower that is far behind reads blocks.
func (p *Pipeline) Compact(t *testing.T) {
	t.Helper()
	for shard := range p.Shards {
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: p.Store, Grace: -1})
		_, err := c.Merge(t.Context())
		if err == nil {
			_, err = c.Remove(t.Context(), p.head[shard])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Fold removes manifests, of which only blocks are left, as far as a random generation and a checkpoint allow.
func (p *Pipeline) Fold(t *testing.T) {
	t.Helper()
	for shard := range p.Shards {
		head := p.head[shard]
		if head == 0 {
			continue
		}
		p.checkpoints++
		err := checkpoint.Create(t.Context(), p.Store, &checkpoint.Document{Shard: shard, Seq: head,
			Number: p.checkpoints, Writer: "w", State: 1, Files: []checkpoint.File{{Name: "MANIFEST-1",
				Key: checkpoint.FileKey(shard, p.checkpoints, "w", 1), Bytes: 1,
				SHA256: strings.Repeat("00", 32)}}})
		if err != nil {
			t.Fatal(err)
		}
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: p.Store, Grace: -1})
		removed, err := c.Fold(t.Context(), commitlog.FoldOptions{Keep: 1 + p.rnd.Int64N(head)})
		if err != nil {
			t.Fatal(err)
		}
		p.Folded += removed.Objects
	}
}

// RowsAt returns the live rows at a cut. The cut names shards and manifests, such as "0:17,1:12".
func (p *Pipeline) RowsAt(t *testing.T, manifests string) map[string]rows.Committed {
	t.Helper()
	out := map[string]rows.Committed{}
	for _, part := range strings.Split(manifests, ",") {
		name, number, _ := strings.Cut(part, ":")
		shard, err := strconv.Atoi(name)
		seq, err2 := strconv.ParseInt(number, 10, 64)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		maps.Copy(out, p.past[shard][seq])
	}
	return out
}

// Cut is the newest one.
func (p *Pipeline) Cut() string {
	var parts []string
	for shard, seq := range p.head {
		parts = append(parts, fmt.Sprintf("%d:%d", shard, seq))
	}
	return strings.Join(parts, ",")
}

// Differ says how rows differ from those that are wanted, "" if they do not.
func Differ(got, want map[string]rows.Committed) string {
	for id := range maps.Keys(want) {
		g, w := got[id], want[id]
		if len(g.Labels) == 0 && len(w.Labels) == 0 {
			g.Labels, w.Labels = nil, nil
		}
		if len(g.LinkEnds) == 0 && len(w.LinkEnds) == 0 {
			g.LinkEnds, g.LinkKinds, g.LinkWeights, g.LinkTimes = nil, nil, nil, nil
		}
		if !reflect.DeepEqual(g, w) {
			return fmt.Sprintf("%s is %+v, want %+v", id, g, w)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			return id + " is left"
		}
	}
	return ""
}
