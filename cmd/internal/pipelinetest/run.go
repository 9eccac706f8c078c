package pipelinetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// What dead letters call the topics.
const (
	nodesTopic = "nodes"
	edgesTopic = "edges"
)

// timestamp is that of records without $time. Of equal event times, the edges topic and the later record win.
var timestamp = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Result says how a test went.
type Result struct {
	Name string `json:"name"`
	// Differences are what was expected and is not there, and what is there and was not expected.
	Differences []Difference `json:"differences,omitempty"`
}

// Passed reports whether the test found what it expects.
func (r *Result) Passed() bool { return len(r.Differences) == 0 }

// Run runs the tests of a file. An error says that they cannot be run.
func Run(ctx context.Context, f *File) ([]Result, error) {
	cfg, err := f.configuration()
	if err != nil {
		return nil, err
	}
	var out []Result
	for i := range f.Tests {
		t := &f.Tests[i]
		got, err := f.apply(ctx, cfg, t)
		if err != nil {
			return nil, fmt.Errorf("test %q: %w", t.Name, err)
		}
		out = append(out, Result{Name: t.Name, Differences: got.compare(&t.Expect, cfg.Ingest.Undirected)})
	}
	return out, nil
}

// outcome is what the records of a test have become.
type outcome struct {
	rows    map[string]rows.Row
	letters []letter
}

// letter is a dead letter, and the record that it is about.
type letter struct {
	topic  string
	record int64
	fault  decode.Fault
}

// apply decodes the records of a test and computes the graph that they state.
func (f *File) apply(ctx context.Context, cfg *config.Config, t *Case) (*outcome, error) {
	mapping, limits := wiring.MappingOf(cfg)
	nodes, err := decode.Nodes(mapping.Nodes, limits, cfg.Shards)
	if err != nil {
		return nil, err
	}
	edges, err := decode.Edges(mapping.Edges, limits, cfg.Shards)
	if err != nil {
		return nil, err
	}
	now := t.Now.Time
	if now.IsZero() {
		now = time.Now()
	}
	graph, out := oracle.New(cfg.Ingest.Undirected), &outcome{}
	for _, topic := range []struct {
		name    string
		decoder *decode.Decoder
		records Input
	}{{nodesTopic, nodes, t.Nodes}, {edgesTopic, edges, t.Edges}} {
		topic.decoder.LimitFuture(cfg.Ingest.MaxFuture, func() time.Time { return now })
		a := applier{graph: graph, out: out, topic: topic.name, decoder: topic.decoder, shards: cfg.Shards}
		for i := range topic.records {
			r := &topic.records[i]
			if r.File == "" {
				a.add(int64(i+1), r)
				continue
			}
			from := *r
			from.ListSeparator = cmp.Or(r.ListSeparator, f.read.ListSeparator)
			from.SkipWithoutText = r.SkipWithoutText || f.read.SkipWithoutText
			if err := a.addFile(ctx, filepath.Join(f.dir, r.File), &from, mapping, limits); err != nil {
				return nil, err
			}
		}
	}
	out.rows = graph.Rows()
	return out, nil
}

// applier adds the records of one topic to a graph.
type applier struct {
	graph   *oracle.Graph
	out     *outcome
	topic   string
	decoder *decode.Decoder
	shards  int
	offset  int64
	scratch []mutation.Mutation
}

// add decodes a record as a shard reads it from its topic. Without a key, it has its id for one.
func (a *applier) add(number int64, r *Record) {
	at := r.Time.Time
	if at.IsZero() {
		at = timestamp
	}
	record := decode.Record{Value: r.Value, Time: at, Offset: a.offset}
	a.offset++
	if r.Key != nil {
		record.Key = []byte(*r.Key)
	} else if id, _, ok := a.decoder.Route(r.Value); ok {
		record.Key = []byte(id)
	}
	record.Partition = client.Partition(record.Key, a.shards)
	var fault *decode.Fault
	a.scratch, fault = a.decoder.Decode(record, a.scratch[:0])
	if r.SkipWithoutText && fault == nil && a.decoder.Textless() {
		return
	}
	for _, m := range a.scratch {
		a.graph.Add(m)
	}
	if fault != nil {
		a.refuse(number, *fault)
	}
}

func (a *applier) refuse(number int64, fault decode.Fault) {
	a.out.letters = append(a.out.letters, letter{a.topic, number, fault})
}

// addFile adds the records that run and backfill would send of a file.
func (a *applier) addFile(ctx context.Context, path string, r *Record, mapping decode.Mapping,
	limits decode.Limits) error {
	inputs, err := backfill.Files(path)
	if err != nil {
		return err
	}
	o := backfill.SampleOptions{Mapping: mapping, Limits: limits, Records: math.MaxInt64, Bytes: math.MaxInt64}
	if a.topic == edgesTopic {
		o.Edges = &mapping.Edges
	}
	for i := range inputs {
		in := &inputs[i]
		in.Read = backfill.ReadOptions{ListSeparator: r.ListSeparator, SkipWithoutText: r.SkipWithoutText}
		_, err := backfill.ReadSample(ctx, in, o, func(s backfill.Sampled) {
			if s.Bad != "" {
				a.refuse(s.Line, decode.Fault{Code: s.Bad, Message: s.Message})
				return
			}
			a.add(s.Line, &Record{Value: a.decoder.Enclose(s.Value), Time: r.Time, SkipWithoutText: r.SkipWithoutText})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
