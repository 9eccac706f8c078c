package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"slices"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"

	"github.com/segmentio/kafka-go"
)

// Snapshot says that inputs are whole: what the pipeline has and they lack is deleted, as of the time at
// which the newest of them was last modified. So what was stated since then stays.
//
// What the pipeline has is what it has committed. That needs no memory of earlier exports: a snapshot that
// was interrupted, or that ran before everything was committed, is completed by the next one.
type Snapshot struct {
	// Nodes and Edges say which of the inputs are whole.
	Nodes, Edges bool
	// Guard is the share of the nodes, and of the edges, that may be missing. With more, nothing is sent.
	Guard float64
	// Undirected: an edge is there if it is there from either end.
	Undirected bool
	// Committed yields the live nodes.
	Committed func(context.Context) iter.Seq2[Committed, error]
}

// Committed is a live node that the pipeline has committed.
type Committed struct {
	ID string
	// Links are the far ends of its edges.
	Links []string
}

// ErrSnapshot: a snapshot would delete too much, or cannot be one.
var ErrSnapshot = errors.New("no snapshot")

// missing is what a pipeline has and a snapshot lacks.
type missing struct {
	nodes []string
	edges [][2]string // source and destination; of an undirected graph once from each end that shows it
	// links is how many edges that is as people state them.
	links int64
	// How many nodes and edges the pipeline has, each edge once for each node that shows it.
	ofNodes, ofEdges int64
}

// findMissing reads the inputs that are whole, and compares them with what the pipeline has committed.
func (s *sender) findMissing(ctx context.Context) (m missing, err error) {
	o := &s.Snapshot
	if !o.Nodes && !o.Edges {
		return m, nil
	}
	var nodes, edges present
	if o.Nodes {
		nodes, err = s.read(ctx, "nodes", s.Nodes, false)
	}
	if o.Edges && err == nil {
		edges, err = s.read(ctx, "edges", s.Edges, true)
	}
	if err != nil {
		return m, err
	}
	for node, err := range o.Committed(ctx) {
		if err != nil {
			return m, fmt.Errorf("snapshot: what the pipeline has: %w", err)
		}
		if m.ofNodes++; o.Nodes && !nodes.has(node.ID) {
			m.nodes = append(m.nodes, node.ID)
		}
		for _, end := range node.Links {
			if m.ofEdges++; o.Edges && !edges.has(node.ID, end) && !(o.Undirected && edges.has(end, node.ID)) {
				m.edges = append(m.edges, [2]string{node.ID, end})
			}
		}
	}
	m.links = o.countLinks(m.edges)
	return m, errors.Join(
		o.check(fmt.Sprintf("%d of the %d nodes", len(m.nodes), m.ofNodes), len(m.nodes), m.ofNodes),
		o.check(fmt.Sprintf("%d edges", m.links), len(m.edges), m.ofEdges))
}

// countLinks counts edges, those from a to b and from b to a as one if they have no direction.
func (o *Snapshot) countLinks(edges [][2]string) int64 {
	if !o.Undirected {
		return int64(len(edges))
	}
	hashes := make(present, len(edges))
	for i, e := range edges {
		hashes[i] = hashNames(min(e[0], e[1]), max(e[0], e[1]))
	}
	slices.Sort(hashes)
	return int64(len(slices.Compact(hashes)))
}

// check refuses a snapshot that lacks more than the guard allows.
func (o *Snapshot) check(what string, lacking int, of int64) error {
	share := float64(lacking) / float64(max(of, 1))
	if share <= o.Guard {
		return nil
	}
	return fmt.Errorf("%w: the files lack %s that the pipeline has, %.1f %%, and the guard is at %.1f %%; nothing was "+
		"sent. If they are whole, let them pass with --snapshot-guard %.3g (ingest.snapshot_guard)",
		ErrSnapshot, what, 100*share, 100*o.Guard, min(1, share+0.001))
}

// present are hashes of what a snapshot has, ascending. If two hashes were the same, a node would stay that
// should go: of ten million nodes with a probability of 10⁻⁵.
type present []uint64

func (p present) has(names ...string) bool {
	_, found := slices.BinarySearch(p, hashNames(names...))
	return found
}

// hashNames hashes ids, which hold no NUL.
func hashNames(names ...string) uint64 {
	h := fnv.New64a()
	for _, name := range names {
		_, _ = h.Write([]byte(name)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// read reads what inputs state, whatever an earlier run has sent of them.
func (s *sender) read(ctx context.Context, what string, inputs []Input, edges bool) (p present, err error) {
	var decoder *decode.Decoder
	columns := nodeColumns(&s.Mapping.Nodes)
	if edges {
		columns = edgeColumns(&s.Mapping.Edges)
		decoder, err = decode.Edges(s.Mapping.Edges, s.Limits, 1)
	} else {
		decoder, err = decode.Nodes(s.Mapping.Nodes, s.Limits, 1)
	}
	if err != nil {
		return nil, err
	}
	var total int64
	for i := range inputs {
		total += inputs[i].Size
	}
	s.Progress.Stage("compare "+what, total)
	for i := range inputs {
		if p, err = s.readInput(ctx, &inputs[i], decoder, columns, edges, p); err != nil {
			return nil, err
		}
	}
	slices.Sort(p)
	return p, nil
}

func (s *sender) readInput(ctx context.Context, in *Input, decoder *decode.Decoder, columns columns, edges bool,
	p present) (_ present, err error) {
	r, closer, err := in.open(ctx, s.Limits.RecordBytes, columns, s.Progress.Add)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	var scratch []mutation.Mutation
	for {
		rec, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		case rec.over != nil || rec.bad != "":
			return nil, unread(in, rec.line, "the record is too large or no CSV row")
		}
		value := decoder.Enclose(rec.value)
		if !edges {
			if id, _, ok := decoder.Route(value); ok {
				p = append(p, hashNames(id))
				continue
			}
		}
		var fault *decode.Fault
		scratch, fault = decoder.Decode(decode.Record{Value: value}, scratch[:0])
		if fault != nil && !fault.Loops || !edges { // no pipeline has an edge from a node to itself
			return nil, unread(in, rec.line, fmt.Sprint(fault))
		}
		for i := range scratch {
			m := &scratch[i]
			if m.Other != "" {
				p = append(p, hashNames(m.ID, m.Other))
			}
			for _, end := range m.Others {
				p = append(p, hashNames(m.ID, end))
			}
		}
	}
}

// unread refuses a snapshot with a record that may state what the pipeline has.
func unread(in *Input, line int64, why string) error {
	return fmt.Errorf("%w: %s, line %d: %s. What the record states cannot be known, and would be deleted; nothing was "+
		"sent. Correct or remove the line", ErrSnapshot, in.Name, line, why)
}

// retract deletes what is missing.
func (s *sender) retract(ctx context.Context, m missing) error {
	for _, id := range m.nodes {
		value, err := s.Mapping.Nodes.Deletion(id)
		if err == nil {
			err = s.sendRetraction(ctx, s.Topics.Nodes, id, value, newest(s.Nodes))
		}
		if err != nil {
			return fmt.Errorf("snapshot: delete node %q: %w", id, err)
		}
		s.stats.MissingNodes++
	}
	for _, edge := range m.edges {
		value, err := s.Mapping.Edges.Deletion(edge[0], edge[1], "")
		if err == nil {
			err = s.sendRetraction(ctx, s.Topics.Edges, edge[0], value, newest(s.Edges))
		}
		if err != nil {
			return fmt.Errorf("snapshot: delete the edge from %q to %q: %w", edge[0], edge[1], err)
		}
	}
	s.stats.MissingEdges = m.links
	return cmp.Or(s.sendBatch(ctx), s.producer.Flush(ctx))
}

func (s *sender) sendRetraction(ctx context.Context, topic, key string, value []byte, at time.Time) error {
	s.batch = append(s.batch, kafka.Message{Topic: topic, Key: []byte(key), Value: value, Time: timestamp(at),
		Headers: []kafka.Header{{Key: ingest.EventTimeHeader, Value: []byte(at.UTC().Format(time.RFC3339Nano))}}})
	if len(s.batch) < sendRecords {
		return nil
	}
	return s.sendBatch(ctx)
}

// newest returns when the newest of the inputs was modified.
func newest(inputs []Input) (at time.Time) {
	for i := range inputs {
		at = maxTime(at, inputs[i].Modified)
	}
	return at
}
