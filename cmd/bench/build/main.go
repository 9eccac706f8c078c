// Command build builds a generation of a synthetic graph as tasks in one process, and prints for every stage the time,
// the processor time for each node, and the peak of the resident memory:
//
//	GOMEMLIMIT=1GiB go run ./cmd/bench/build -nodes 1000000 -dir /tmp/build
//
// With -write it writes the graph as files for 'giantstream run' instead. With -from it builds what another store has.
//
// The synthetic graph has communities of nodes that share words and links, so that the figures of the generation mean
// something. It is made as it is read: the memory is that of the build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/stream/commitlog"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/plan"
)

func main() {
	nodes := flag.Int("nodes", 60_000, "nodes of the graph")
	dir := flag.String("dir", "", "folder for the store; a build that was interrupted there goes on")
	workers := flag.Int("workers", 2, "tasks at a time")
	sample := flag.Int("sample", 0, "nodes that the encoder is trained on at most (0: as many as the memory allows)")
	encoder := flag.String("encoder", "linear", "encoder to train")
	from := flag.String("from", "", "store whose rows are built, instead of a synthetic graph")
	rates := flag.String("rates", "", "write rates for -against and 'giantstream plan' to this file instead")
	against := flag.String("against", "", "compare with the estimate by the rates in this file")
	write := flag.String("write", "", "write the graph to nodes.jsonl.gz and edges.jsonl.gz in this folder instead")
	flag.Parse()
	if *write != "" {
		stage.Exit("build", graph{*nodes, 1}.write(*write))
		return
	}
	stage.Exit("build", bench{*nodes, *dir, *from, *workers, *sample, *encoder, *rates, *against}.run())
}

// bench is what is asked of a run.
type bench struct {
	nodes          int
	dir, from      string
	workers        int
	sample         int
	encoder        string
	rates, against string
}

func (b bench) run() error {
	if b.dir == "" {
		return errors.New("-dir is missing: a folder for the store")
	}
	workers := b.workers
	if b.rates != "" {
		return b.calibrate()
	}
	store, err := dirstore.Open(b.dir)
	if err != nil {
		return err
	}
	cfg := config.Default()
	settings := wiring.RequestOf(&cfg).Settings
	settings.Encoder = b.encoder
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	r := fit.Resources{Workers: workers, MemoryLimit: debug.SetMemoryLimit(-1), Now: time.Now, Log: log}
	wiring.LimitMemory(r.MemoryLimit)
	ctx := context.Background()
	in, err := b.input(ctx)
	if err != nil {
		return err
	}
	nodes := in.nodes
	w := &build.Worker{Means: work.Means{Store: store, Resources: r,
		Log: func(context.Context, map[int]int64) (work.Log, error) { return in.log, nil }}}
	division, err := w.Begin(ctx, build.Request{Settings: settings, Shards: in.shards, Sample: b.sample,
		AtATime: workers})
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, %d partitions, %d ranges, a sample of %d, GOMEMLIMIT=%s\n", nodes,
		division.Partitions, division.Ranges, division.Sample, os.Getenv("GOMEMLIMIT"))
	fmt.Printf("%-12s %6s %9s %9s %12s %9s\n", "stage", "tasks", "s", "CPU s", "CPU µs/node", "peak MiB")
	m := &meter{nodes: nodes, took: map[string]float64{}}
	watch := &build.Watch{Work: w, Log: log}
	doc, err := w.Run(ctx, division, tasks.Local{Workers: workers}, watch, func(s stages.Stage) {
		m.next(s)
		watch.Stage(s)
	}, stages.Finish)
	if err != nil {
		return err
	}
	m.end()
	fmt.Printf("%-12s %6s %9.1f %9.1f %12.1f %9d\n", "all", "", m.wall, m.cpu, 1e6*m.cpu/float64(nodes), m.peak)
	for _, e := range doc.Evaluation {
		fmt.Printf("%s: ", e.Encoder)
		if e.Links != nil {
			fmt.Printf("link AUC %.3f ± %.3f ", e.Links.AUC, e.Links.AUCStdErr)
		}
		for _, p := range e.Probes {
			fmt.Printf("class at %g %%: %.3f ", 100*p.Rate, p.Accuracy)
		}
		fmt.Println()
	}
	fmt.Printf("mean cosine of the tree %.4f, %d links\n", doc.Tree.MeanCosine, doc.Graph.Links)
	if b.against == "" {
		return nil
	}
	return m.compare(b.against, plan.Input{Nodes: int64(nodes), Edges: int64(doc.Graph.Links) / 2,
		TextBytes: in.textBytes, Classes: in.classes, Workers: 1, Cores: workers,
		Memory: r.MemoryLimit * int64(workers), Bandwidth: 1 << 30, Shards: in.shards}, division)
}

// input is a graph to build.
type input struct {
	log       work.Log
	shards    int
	nodes     int
	textBytes int64
	classes   int
}

func (b bench) input(ctx context.Context) (in input, err error) {
	if b.from == "" {
		g := graph{b.nodes, 1}
		return input{g, 1, b.nodes, g.textBytes(), classes}, nil
	}
	store, err := dirstore.Open(b.from)
	if err != nil {
		return in, err
	}
	id, err := commitlog.LoadIdentity(ctx, store)
	if err != nil {
		return in, err
	}
	cut, err := logview.OpenCut(ctx, store, id.Shards, nil)
	if err != nil {
		return in, err
	}
	in.log, in.shards = cut.Log(), id.Shards
	classes := map[string]bool{}
	for row, err := range cut.Rows(ctx) {
		if err != nil {
			return in, err
		}
		if !row.Deleted {
			in.nodes, in.textBytes = in.nodes+1, in.textBytes+int64(len(row.Text))
			if row.Class != "" {
				classes[row.Class] = true
			}
		}
	}
	in.classes = len(classes)
	return in, nil
}

// calibrate writes the rates of a small graph.
func (b bench) calibrate() error {
	cfg := config.Default()
	settings := wiring.SettingsOf(&cfg)
	settings.Encoder = b.encoder
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := plan.Calibrate(context.Background(), plan.Trial{
		Dir: b.dir,
		Log: func(context.Context, func(sink.Store) sink.Store) (work.Log, error) {
			return graph{b.nodes, 1}, nil
		},
		Shards: 1, Settings: settings, Machine: runtime.GOARCH,
		Resources: fit.Resources{Workers: runtime.GOMAXPROCS(0), MemoryLimit: debug.SetMemoryLimit(-1), Now: time.Now,
			Log: log},
		Watch: func(build, builds int, s stages.Stage) {
			log.Info("calibrating", "build", build, "of", builds, "stage", s.Name)
		},
	})
	if err != nil {
		return err
	}
	return c.Save(b.rates)
}

// meter prints what each stage took.
type meter struct {
	nodes     int
	stage     stages.Stage
	began     time.Time
	cpuBefore float64
	wall, cpu float64
	peak      int
	took      map[string]float64 // processor seconds of each stage
}

// compare prints what the rates in a file would have estimated beside what was measured.
func (m *meter) compare(path string, in plan.Input, division stages.Plan) error {
	c, err := plan.Load(path)
	if err != nil {
		return err
	}
	estimate, err := plan.Divided(in, c, division)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-12s %12s %9s %9s\n", "stage", "estimate", "measured", "error")
	line := func(name string, estimate, measured float64) {
		fmt.Printf("%-12s %12.1f %9.1f %8.0f%%\n", name, estimate, measured, 100*(estimate/measured-1))
	}
	for _, s := range estimate.Stages {
		line(s.Name, s.CoreSeconds, m.took[s.Name])
	}
	line("all", estimate.Total.CoreSeconds, m.cpu)
	return nil
}

func (m *meter) next(s stages.Stage) {
	m.end()
	m.stage, m.began, m.cpuBefore = s, time.Now(), cpuSeconds()
	// "5" sets the peak of the resident memory back to what it is now (proc(5)).
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

func (m *meter) end() {
	if m.stage.Name == "" {
		return
	}
	wall, cpu, peak := time.Since(m.began).Seconds(), cpuSeconds()-m.cpuBefore, peakMiB()
	fmt.Printf("%-12s %6d %9.1f %9.1f %12.1f %9d\n", m.stage.Name, m.stage.Tasks, wall, cpu,
		1e6*cpu/float64(m.nodes), peak)
	m.took[m.stage.Name] = cpu
	m.wall, m.cpu, m.peak = m.wall+wall, m.cpu+cpu, max(m.peak, peak)
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// peakMiB is the peak of the resident memory, 0 where the system does not say.
func peakMiB() int {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err == nil {
				return kib >> 10
			}
		}
	}
	return 0
}
