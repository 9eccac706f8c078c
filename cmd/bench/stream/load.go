package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
)

// load measures the first load of a graph from files, as run --nodes --edges --until-idle does it:
// one process with the embedded broker, and a directory as the store. It needs no servers. Its figure
// includes reading the files and the broker, and ends when everything is committed.
func load(ctx context.Context, args []string) (err error) {
	fl := flag.NewFlagSet("load", flag.ExitOnError)
	dir := fl.String("dir", ".dev/bench-load", "`directory` for files, broker, state and store; removed at the end")
	nodes := fl.Int("nodes", 1_000_000, "nodes")
	degree := fl.Int("degree", 5, "edges per node")
	live := fl.Bool("live", false, "commit in windows, as if the topics were followed")
	profile := fl.String("cpuprofile", "", "write a CPU profile to `file`")
	if err := fl.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(*dir)) }()
	g := newGraph(*nodes, *degree, 1)
	files, err := g.write(*dir)
	if err != nil {
		return err
	}
	cfg := config.Local()
	cfg.Store = filepath.Join(*dir, "store")
	cfg.StateDir, cfg.Kafka.DataDir = filepath.Join(*dir, "state"), filepath.Join(*dir, "broker")
	cfg.Kafka.Brokers = config.List{config.EmbeddedBroker}
	store, err := wiring.OpenStore(ctx, &cfg)
	if err != nil {
		return err
	}
	took, err := measured(*profile, func() error {
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		s, err := service.Start(ctx, service.Options{Config: &cfg, Store: store, Log: log, Load: !*live, Resent: true})
		if err != nil {
			return err
		}
		_, err = wiring.Backfill(ctx, &cfg, s.Client(), backfill.Sources{Nodes: files[0], Edges: files[1]}, nil)
		if err == nil {
			err = s.Drain(ctx)
		}
		return errors.Join(err, s.Close())
	})
	if err != nil {
		return err
	}
	o, err := readOutcome(ctx, store, cfg.Shards)
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, %d edges: %.1f s of processor time, %.1f s wall, peak %.0f MiB; "+
		"%d manifests, %d objects, %d rows; load %.1f\n", o.nodes, o.edges, took.CPU, took.Wall, took.Peak,
		o.manifests, o.objects, o.rows, loadAverage())
	if n, links := int64(g.nodes), int64(g.nodes*g.degree); o.nodes != n || o.ids != n || o.edges != links ||
		o.labels != 2*links {
		return fmt.Errorf("the outcome is not the graph: %d nodes, %d newest rows, %d edges, %d labels",
			o.nodes, o.ids, o.edges, o.labels)
	}
	return nil
}

// measured runs f, with a CPU profile if there is a path for one.
func measured(profile string, f func() error) (t stage.Took, err error) {
	err = stage.Profile(profile, func() error {
		t, err = stage.Measure(f)
		return err
	})
	return t, err
}

// write writes the graph as JSON lines, nodes and edges.
func (g *graph) write(dir string) (files [2][]backfill.Input, err error) {
	for i, name := range []string{"nodes.jsonl", "edges.jsonl"} {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			return files, err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		for n := range g.nodes {
			if i == 0 {
				_, _ = w.Write(append(g.node("", n, 0).Value, '\n')) // Flush has the error
				continue
			}
			for k := range g.degree {
				_, _ = w.Write(append(g.edge("", n, k).Value, '\n'))
			}
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			return files, err
		}
		if files[i], err = backfill.Files(path); err != nil {
			return files, err
		}
	}
	return files, nil
}
