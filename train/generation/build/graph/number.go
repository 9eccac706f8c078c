package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/sink/rows"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
)

// numberStats is what number says of a partition.
type numberStats struct {
	Nodes       int    `json:"nodes"`
	Deleted     int    `json:"deleted"`
	Fingerprint string `json:"fingerprint"`
	TextBytes   int64  `json:"text_bytes"`
	// Kinds counts the links that have a kind, by kind.
	Kinds map[string]int `json:"kinds,omitempty"`
	// NewestLink is the newest event time of a link, in plans with weights.
	NewestLink int64 `json:"newest_link,omitempty"`
}

func (s *numberStats) count(facts []Fact) {
	for _, f := range facts {
		s.NewestLink = max(s.NewestLink, f.Time)
		if f.Kind == "" {
			continue
		}
		if s.Kinds == nil {
			s.Kinds = map[string]int{}
		}
		s.Kinds[f.Kind]++
	}
}

// noHidden and hiddenSlot: the highest bit of a slot or of a position marks a link that the evaluation hides.
const (
	hiddenBit = 1 << 31
	noNode    = math.MaxUint32
)

// Number puts the newest rows of a partition in the order of (hash, id). It holds the partition's rows in memory.
func Number(ctx context.Context, t *work.Task) error {
	nodes, s, err := newestRows(ctx, t)
	if err != nil {
		return err
	}
	log, err := t.Log(ctx, t.Doc.Cut)
	if err != nil {
		return err
	}
	graph := log.Fingerprint()
	w := newNumberWriter(t, len(nodes))
	defer w.close()
	for i, n := range nodes {
		s.TextBytes += int64(len(n.text))
		s.count(readFacts(&sections.Decoder{Rest: n.facts}, t.Plan.Weighted, nil))
		row, err := w.add(i, &n)
		if err != nil {
			return err
		}
		graph.Add(row)
	}
	s.Nodes, s.Fingerprint = len(nodes), graph.Sum()
	t.Stats = s
	return w.put(ctx)
}

// numberWriter writes the outputs of Number.
type numberWriter struct {
	*work.Task
	texts, nodes, labels, facts *sections.Writer // by block
	keys, classes               *sections.Writer
	refs                        *sections.Writer // by the partition of the far end
	seen                        map[string]bool  // classes
	b                           []byte
}

func newNumberWriter(t *work.Task, nodes int) *numberWriter {
	k := Blocks(nodes)
	return &numberWriter{Task: t, texts: t.NewSections(k), nodes: t.NewSections(k), labels: t.NewSections(k),
		facts: t.NewSections(k), keys: t.NewSections(1), classes: t.NewSections(1),
		refs: t.NewSections(t.Plan.Partitions), seen: map[string]bool{"": true}}
}

func (w *numberWriter) close() {
	for _, out := range []*sections.Writer{w.texts, w.nodes, w.labels, w.facts, w.keys, w.classes, w.refs} {
		_ = out.Close() // a temporary file
	}
}

// add writes node i, and returns its row without attributes.
func (w *numberWriter) add(i int, n *scattered) (*rows.Row, error) {
	row := &rows.Row{NodeID: string(n.id), Text: string(n.text), Class: string(n.class), EventTime: n.time}
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(w.b[:0], n.hash), checkOf(row.NodeID))
	err := w.keys.Add(0, b)
	err = errors.Join(err, w.texts.Add(i/Block, sections.AppendString(b[:0], row.Text)))
	b = sections.AppendString(sections.AppendString(b[:0], row.NodeID), row.Class)
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, n.time), int64(n.shard)), n.seq)
	err = errors.Join(err, w.nodes.Add(i/Block, b))
	b = append(binary.AppendUvarint(b[:0], uint64(n.links)), n.labels...)
	err = errors.Join(err, w.labels.Add(i/Block, b))
	if w.Plan.Weighted {
		err = errors.Join(err, w.facts.Add(i/Block, n.facts))
	}
	if !w.seen[row.Class] {
		w.seen[row.Class] = true
		err = errors.Join(err, w.classes.Add(0, sections.AppendString(nil, row.Class)))
	}
	w.b = b
	return row, errors.Join(err, w.addRefs(i, n, row))
}

// addRefs writes the links of node i, and adds them to its row.
func (w *numberWriter) addRefs(i int, n *scattered, row *rows.Row) (err error) {
	holdout, seed := w.Doc.Settings.Holdout, w.Doc.Settings.EvalSeed
	d := sections.Decoder{Rest: n.labels}
	for slot := range n.links {
		label := string(d.StringBytes())
		row.Labels = append(row.Labels, label)
		h, at := HashOf(label), uint32(slot)
		if holdout > 0 && eval.Hide(n.hash, h, holdout, seed) {
			at |= hiddenBit
		}
		w.b = binary.LittleEndian.AppendUint64(w.b[:0], h)
		for _, v := range []uint32{checkOf(label), uint32(i), at} {
			w.b = binary.LittleEndian.AppendUint32(w.b, v)
		}
		err = errors.Join(err, w.refs.Add(PartitionOf(h, w.Plan.Partitions), w.b))
	}
	return err
}

// put stores the outputs.
func (w *numberWriter) put(ctx context.Context) error {
	outputs := map[string]*sections.Writer{"texts": w.texts, "nodes": w.nodes, "labels": w.labels, "keys": w.keys,
		"classes": w.classes, "refs": w.refs}
	if w.Plan.Weighted {
		outputs["facts"] = w.facts
	}
	for name, out := range outputs {
		if err := w.PutSections(ctx, name, out); err != nil {
			return err
		}
	}
	return nil
}

// newestRows returns the newest row of every node of the partition that is not deleted, in the order of (hash, id).
func newestRows(ctx context.Context, t *work.Task) (nodes []scattered, s numberStats, err error) {
	begin, newest, times := 0, map[string]int{}, map[string]int64{}
	for k, split := range t.Plan.Splits {
		from, err := t.OutputsOf(ctx, stages.Scatter, k)
		if err != nil {
			return nil, s, err
		}
		b, err := from.ReadSection(ctx, "rows", t.Partition)
		if err != nil {
			return nil, s, err
		}
		d := sections.Decoder{Rest: b}
		for d.More() {
			n := readScattered(&d, t.Plan.Weighted)
			if d.Err != nil {
				break
			}
			if n.kind == timeOnly {
				id := string(n.id)
				times[id] = max(times[id], n.time)
				continue
			}
			n.shard, n.hash = split.Shard, HashOf(string(n.id))
			if k, ok := newest[string(n.id)]; !ok {
				newest[string(n.id)] = len(nodes)
				nodes = append(nodes, n)
			} else if n.seq > nodes[k].seq {
				nodes[k] = n
			}
		}
		if d.Err != nil {
			return nil, s, from.Explain(d.Err)
		}
		if k+1 < len(t.Plan.Splits) && t.Plan.Splits[k+1].Shard == split.Shard {
			continue
		}
		all := len(nodes) - begin
		live := slices.DeleteFunc(nodes[begin:], func(n scattered) bool { return n.kind == deleted })
		for i := range live { // a node's event time only grows
			if t, ok := times[string(live[i].id)]; ok {
				live[i].time = max(live[i].time, t)
			}
		}
		nodes = nodes[:begin+len(live)]
		s.Deleted += all - len(live)
		begin = len(nodes)
		clear(newest)
		clear(times)
	}
	return nodes, s, sortNodes(nodes)
}

// sortNodes puts nodes in the order of (hash, id). It is an error if two of them cannot be told apart.
func sortNodes(nodes []scattered) error {
	slices.SortFunc(nodes, func(a, b scattered) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), bytes.Compare(a.id, b.id))
	})
	for i := 1; i < len(nodes); i++ {
		a, b := nodes[i-1], nodes[i]
		switch {
		case bytes.Equal(a.id, b.id):
			return fmt.Errorf("node %q stands in shards %d and %d: the nodes topic is not keyed by id", a.id,
				a.shard, b.shard)
		case a.hash == b.hash && checkOf(string(a.id)) == checkOf(string(b.id)):
			return fmt.Errorf("the ids %q and %q have the same 96 bits of hashes: rename one of the nodes",
				a.id, b.id)
		}
	}
	return nil
}
