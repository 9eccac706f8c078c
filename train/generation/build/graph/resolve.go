package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"sort"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

const (
	keyBytes    = 12 // hash u64, check u32
	refBytes    = 20 // hash u64, check u32, source u32 within its partition, slot u32
	answerBytes = 12 // source u32 within its partition, slot u32, position u32
)

// Resolve looks up the nodes that links lead to, for the links that lead into its partition. It holds the
// partition's keys in memory, and the links between two partitions.
//
//	arcs     section p: known links, those of orders too, from nodes of partition p, in the order of the nodes
//	answers  section p: for partition p, where its links lead
func Resolve(ctx context.Context, t *work.Task) error {
	x, err := LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	own, err := t.OutputsOf(ctx, stages.Number, t.Partition)
	if err != nil {
		return err
	}
	keys, err := own.ReadSection(ctx, "keys", 0)
	if err != nil {
		return err
	}
	links, err := readOrdered(ctx, t, t.Partition)
	if err != nil {
		return err
	}
	together := reverse(links)
	r := resolver{Task: t, base: x.Base[t.Partition], keys: keys, answers: t.NewSections(t.Plan.Partitions)}
	arcs := t.NewSections(t.Plan.Partitions)
	defer arcs.Close()      //nolint:errcheck // temporary files
	defer r.answers.Close() //nolint:errcheck
	var b []byte
	for p := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Number, p)
		if err != nil {
			return err
		}
		refs, err := from.ReadSection(ctx, "refs", t.Partition)
		if err != nil {
			return err
		}
		if err := r.resolve(p, refs); err != nil {
			return err
		}
		r.stated, together = mergeArcs(r.stated, together, x.Base[p], x.Base[p+1])
		for _, a := range r.stated {
			b = binary.LittleEndian.AppendUint32(b[:0], a.source)
			if err := arcs.Add(p, binary.LittleEndian.AppendUint32(b, a.target)); err != nil {
				return err
			}
		}
	}
	return errors.Join(t.PutSections(ctx, "arcs", arcs), t.PutSections(ctx, "answers", r.answers))
}

// resolver resolves links into the task's partition.
type resolver struct {
	*work.Task
	base    int    // position of the partition's first node
	keys    []byte // of its nodes
	answers *sections.Writer
	stated  []arc // of the partition that was resolved last, without hidden links
	b       []byte
}

// resolve answers the links of partition p, whose ends it looks up among the keys.
func (r *resolver) resolve(p int, refs []byte) error {
	r.stated = r.stated[:0]
	for ; len(refs) >= refBytes; refs = refs[refBytes:] {
		target, ok := lookUp(r.keys, refs[:keyBytes])
		if !ok {
			continue
		}
		source, slot := binary.LittleEndian.Uint32(refs[12:]), binary.LittleEndian.Uint32(refs[16:])
		if p == r.Partition && int(source) == target {
			continue // no links to oneself
		}
		position := uint32(r.base + target)
		if slot&hiddenBit != 0 {
			position |= hiddenBit
		} else {
			r.stated = append(r.stated, arc{source, uint32(target)})
		}
		r.b = binary.LittleEndian.AppendUint32(r.b[:0], source)
		r.b = binary.LittleEndian.AppendUint32(r.b, slot&^hiddenBit)
		if err := r.answers.Add(p, binary.LittleEndian.AppendUint32(r.b, position)); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds a key, hash and check, among keys that ascend by hash.
func lookUp(keys, key []byte) (int, bool) {
	hash, check := binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint32(key[8:])
	n := len(keys) / keyBytes
	hashAt := func(i int) uint64 { return binary.LittleEndian.Uint64(keys[i*keyBytes:]) }
	for i := sort.Search(n, func(i int) bool { return hashAt(i) >= hash }); i < n && hashAt(i) == hash; i++ {
		if binary.LittleEndian.Uint32(keys[i*keyBytes+8:]) == check {
			return i, true
		}
	}
	return 0, false
}

// nodeKeys are the keys of all nodes, by partition: 12 bytes a node.
type nodeKeys [][]byte

func readKeys(ctx context.Context, t *work.Task) (nodeKeys, error) {
	keys := make(nodeKeys, t.Plan.Partitions)
	for p := range keys {
		from, err := t.OutputsOf(ctx, stages.Number, p)
		if err != nil {
			return nil, err
		}
		if keys[p], err = from.ReadSection(ctx, "keys", 0); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// find returns the position of a node by its id.
func (k nodeKeys) find(x Numbering, id string) (position int, ok bool) {
	hash := HashOf(id)
	p := PartitionOf(hash, len(k))
	key := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, hash), checkOf(id))
	at, ok := lookUp(k[p], key)
	return x.Base[p] + at, ok
}

// hash returns HashOf the id of the node at a position.
func (k nodeKeys) hash(x Numbering, position int) uint64 {
	p := x.PartitionAt(position)
	return binary.LittleEndian.Uint64(k[p][(position-x.Base[p])*keyBytes:])
}

// NodeFinder returns a function that finds the position of a node by its id. It holds 12 bytes a node.
func NodeFinder(ctx context.Context, t *work.Task, x Numbering) (find func(id string) (int, bool), err error) {
	keys, err := readKeys(ctx, t)
	return func(id string) (int, bool) { return keys.find(x, id) }, err
}
