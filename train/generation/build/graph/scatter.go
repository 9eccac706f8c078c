package graph

import (
	"context"
	"encoding/binary"

	"giantstream/train/generation"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/work"
)

// Scatter deals the rows of a part of a shard's commit log out to the partitions.
func Scatter(ctx context.Context, t *work.Task) error {
	log, err := t.Log(ctx, t.Doc.Cut)
	if err != nil {
		return err
	}
	out := t.NewSections(t.Plan.Partitions)
	defer out.Close() //nolint:errcheck // a temporary file
	var b []byte
	for r, err := range log.Rows(ctx, t.Plan.Splits[t.Partition]) {
		if err != nil {
			return err
		}
		if b, err = appendRow(b[:0], &r, t.Plan.Weighted); err != nil {
			return err
		}
		if err := out.Add(PartitionOf(HashOf(r.NodeID), t.Plan.Partitions), b); err != nil {
			return err
		}
	}
	return t.PutSections(ctx, "rows", out)
}

func appendRow(b []byte, r *generation.Row, weighted bool) ([]byte, error) {
	b = binary.AppendVarint(binary.AppendVarint(b, r.Seq), r.EventTime)
	kind := live
	switch {
	case r.TimeOnly:
		kind = timeOnly
	case r.Deleted:
		kind = deleted
	}
	b = sections.AppendString(append(b, kind), r.NodeID)
	if r.TimeOnly {
		return b, nil
	}
	b = sections.AppendString(sections.AppendString(b, r.Class), r.Text)
	b = binary.AppendUvarint(b, uint64(len(r.Labels)))
	for _, l := range r.Labels {
		b = sections.AppendString(b, l)
	}
	return appendFacts(b, r, weighted)
}

// What a scattered row is.
const (
	live byte = iota
	deleted
	timeOnly
)

// scattered is a row as it lies in a section of scatter; strings share the section's memory.
type scattered struct {
	hash            uint64
	shard           int
	seq, time       int64
	kind            byte
	id, class, text []byte
	labels          []byte // as appendRow wrote them
	links           int
	facts           []byte // as appendFacts wrote them
}

func readScattered(d *sections.Decoder, weighted bool) (n scattered) {
	n.seq, n.time = d.Varint(), d.Varint()
	if b := d.Bytes(1); b != nil {
		n.kind = b[0]
	}
	if n.id = d.StringBytes(); n.kind == timeOnly {
		return n
	}
	n.class, n.text = d.StringBytes(), d.StringBytes()
	count := d.Uvarint()
	before := d.Rest
	for range count {
		if d.StringBytes(); d.Err != nil {
			return n
		}
	}
	n.labels, n.links = before[:len(before)-len(d.Rest)], int(count)
	before = d.Rest
	readFacts(d, weighted, nil)
	n.facts = before[:len(before)-len(d.Rest)]
	return n
}
