package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/ingest/decode"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/shard"
)

// roofline measures each stage between topic and committed Parquet alone, in this process, and the
// whole pipeline as a process of its own. The embedded broker and the S3 server run in a third
// process. A figure is the processor time of the measuring process, system calls and the engine's
// background work included.
func roofline(ctx context.Context, args []string) (err error) {
	fl := newFlags("roofline")
	nodes := fl.Int("nodes", 300_000, "nodes of the long topic")
	degree := fl.Int("degree", 0, "edges per node; the long topics then have nodes/(1+degree) nodes, "+
		"and only the whole is measured")
	rounds := fl.Int("rounds", 3, "rounds")
	window := fl.Int("window", 5000, "nodes of a shard's window in the stages")
	compression := fl.String("compression", "zstd", "of the rows: zstd, snappy or none")
	whole := fl.Bool("whole", false, "measure only the whole")
	profile := fl.Bool("profile", false, "write CPU profiles of the whole to the directory")
	beside := fl.String("beside", "", "measure the whole of another build of this `program`, too, in turn")
	if err := fl.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(fl.dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keepProfiles(fl.dir, *profile)) }()
	stop, err := startServers(ctx, fl.dir)
	if err != nil {
		return err
	}
	defer stop()
	p, err := openPlace(fl.dir)
	if err != nil {
		return err
	}
	w := workload{"roofline", newGraph(*nodes/(1+*degree)/10, *degree, fl.seed),
		newGraph(*nodes/(1+*degree), *degree, fl.seed), []contender{p.giantstream("1s", *compression, *profile)}}
	if *degree > 0 {
		w.name = "roofline with edges"
	}
	if *beside != "" {
		w.contenders = append(w.contenders, w.contenders[0].beside(*beside))
	}
	lines, err := p.compare(ctx, &w, *rounds, "")
	if err != nil || *whole || *degree > 0 {
		fmt.Println()
		return errors.Join(err, printLines(lines))
	}
	r := &roof{place: p, topic: w.topics("long")[0], window: *window, options: rows.WriteOptions{
		Compression: parquetio.Compression(*compression)}, took: map[string][]float64{}}
	for range *rounds {
		if err := r.measure(ctx); err != nil {
			return err
		}
	}
	return r.print(w.long.nodes, median(lines[0].figures)[1])
}

// keepProfiles removes everything in dir except profiles.
func keepProfiles(dir string, profiles bool) error {
	if !profiles {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".prof" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// stages of the pipeline, in order.
var stages = []string{"fetch and decode batches", "map records to mutations", "apply to the state",
	"commit, without its rows", "rows as Parquet", "upload"}

// roof measures the stages. What one stage makes is kept in memory for the next.
type roof struct {
	*place
	topic   string
	window  int
	options rows.WriteOptions
	took    map[string][]float64 // CPU seconds by stage, one for each round

	records   [shards][]kafka.Message
	mutations [shards][]mutation.Mutation
	rows      [][]rows.Row // of each window
	objects   *memstore.Store
}

// stage runs one stage on a heap without garbage.
func (r *roof) stage(name string, f func() error) error {
	took, err := stage.Measure(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.took[name] = append(r.took[name], took.CPU)
	return nil
}

func (r *roof) measure(ctx context.Context) error {
	if r.records[0] == nil {
		if err := r.fetch(ctx, true); err != nil {
			return err
		}
	}
	for i, f := range []func(context.Context) error{
		func(ctx context.Context) error { return r.fetch(ctx, false) },
		r.decode,
	} {
		if err := r.stage(stages[i], func() error { return f(ctx) }); err != nil {
			return err
		}
	}
	if err := r.shards(ctx); err != nil {
		return err
	}
	if err := r.stage(stages[4], func() error { return r.write(ctx) }); err != nil {
		return err
	}
	store, err := r.store(ctx, "roofline-upload")
	if err != nil {
		return err
	}
	err = r.stage(stages[5], func() error { return upload(ctx, store, r.objects) })
	return errors.Join(err, r.clear(ctx, "roofline-upload"))
}

// fetch reads all partitions of the topic, as many at a time as there are shards.
func (r *roof) fetch(ctx context.Context, keep bool) error {
	ends, err := r.client.EndOffsets(ctx, r.topic)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for partition, end := range ends[r.topic] {
		g.Go(func() error {
			for m, err := range r.client.Range(ctx, r.topic, partition, 0, end) {
				if err != nil {
					return err
				}
				if keep {
					r.records[partition] = append(r.records[partition], m)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// decode maps the records, in batches as a feed has them.
func (r *roof) decode(context.Context) error {
	for s, records := range r.records {
		d, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"text"}, Class: "label", Deleted: "deleted"},
			decode.Limits{RecordBytes: 1 << 20, TextBytes: 1 << 20, EdgesPerRecord: 1000}, shards)
		if err != nil {
			return err
		}
		r.mutations[s] = make([]mutation.Mutation, 0, len(records))
		for _, m := range records {
			var fault *decode.Fault
			r.mutations[s], fault = d.Decode(decode.Record{Key: m.Key, Value: m.Value, Time: m.Time,
				Partition: s, Offset: m.Offset}, r.mutations[s])
			if fault != nil {
				return fault
			}
		}
	}
	return nil
}

// shards applies the mutations to shards and commits them in windows, with uncompressed rows, to a
// store in memory. What is not spent in Apply is the commit's; what the same rows take alone as
// Parquet is subtracted from it.
func (r *roof) shards(ctx context.Context) error {
	cache := shard.NewCache()
	defer cache.Release()
	kept := &memstore.Store{}
	var refs []sink.Ref
	var apply, commit float64
	for s := range shards {
		runtime.GC()
		began := stage.CPUSeconds()
		applied, objects, err := r.shard(ctx, s, kept, cache)
		if err != nil {
			return err
		}
		apply, commit = apply+applied, commit+stage.CPUSeconds()-began-applied
		refs = append(refs, objects...)
	}
	r.rows = nil
	for _, ref := range refs {
		var window []rows.Row
		for row, err := range rows.Read(ctx, kept, ref, rows.ReadOptions{}) {
			if err != nil {
				return err
			}
			window = append(window, row)
		}
		r.rows = append(r.rows, window)
	}
	plain := *r
	plain.options.Compression = parquetio.None
	took, err := stage.Measure(func() error { return plain.write(ctx) })
	r.took[stages[2]] = append(r.took[stages[2]], apply)
	r.took[stages[3]] = append(r.took[stages[3]], commit-took.CPU)
	return err
}

// shard runs one shard, and returns the processor time that its calls of Apply took, and its objects.
func (r *roof) shard(ctx context.Context, s int, store sink.Store, cache *shard.Cache) (
	applied float64, objects []sink.Ref, err error) {
	dir, err := os.MkdirTemp(r.dir, "state-")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sh, err := shard.Open(ctx, shard.Options{Shards: shards, Shard: s, Dir: filepath.Join(dir, "state"),
		Store: store, Cache: cache, Topics: shard.Topics{Nodes: r.topic}, Compression: parquetio.None,
		Window: shard.Window{Changes: 1 << 30, Bytes: 1 << 40, Time: time.Hour}})
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	for window := range slices.Chunk(r.mutations[s], r.window) {
		at := stage.CPUSeconds()
		for batch := range slices.Chunk(window, 1000) {
			next := map[string]int64{r.topic: batch[len(batch)-1].Version.Offset + 1}
			if err := sh.Apply(ctx, mutation.Batch{Mutations: batch, Next: next}); err != nil {
				return 0, nil, err
			}
		}
		applied += stage.CPUSeconds() - at
		m, err := sh.Commit(ctx)
		if err != nil {
			return 0, nil, err
		}
		for _, o := range m.Objects {
			objects = append(objects, sink.Ref{Key: o.Key, Bytes: o.Bytes, CRC32C: o.CRC32C})
		}
	}
	return applied, objects, nil
}

// write writes the rows of each window as an object.
func (r *roof) write(ctx context.Context) error {
	r.objects = &memstore.Store{}
	for i, window := range r.rows {
		in := func(yield func(rows.Row, error) bool) {
			for _, row := range window {
				if !yield(row, nil) {
					return
				}
			}
		}
		if _, err := rows.Write(ctx, r.objects, fmt.Sprintf("%06d.parquet", i), r.options, in); err != nil {
			return err
		}
	}
	return nil
}

// upload puts all objects into the store, as many at a time as there are shards.
func upload(ctx context.Context, store sink.Store, objects sink.Store) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shards)
	for o, err := range objects.List(ctx, "", "") {
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error {
			data, err := sink.ReadAll(ctx, objects, o.Key)
			if err != nil {
				return err
			}
			return store.Put(ctx, o.Key, io.NewSectionReader(bytes.NewReader(data), 0, o.Size), o.Size)
		})
	}
	return g.Wait()
}

// print prints the medians as CPU seconds per million nodes.
func (r *roof) print(nodes int, whole float64) error {
	sum := 0.0
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "\n| stage \t| CPU s per million nodes \t|")
	fmt.Fprintln(t, "|---\t|---\t|")
	for _, name := range stages {
		took := slices.Sorted(slices.Values(r.took[name]))
		m := (took[(len(took)-1)/2] + took[len(took)/2]) / 2 / float64(nodes) * 1e6
		sum += m
		fmt.Fprintf(t, "| %s \t| %.2f \t|\n", name, m)
	}
	fmt.Fprintf(t, "| sum \t| %.2f \t|\n| the whole pipeline \t| %.2f \t|\n", sum, whole)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Printf("\n%d nodes of %d bytes, load %.1f\n", nodes, recordBytes, loadAverage())
	return nil
}
