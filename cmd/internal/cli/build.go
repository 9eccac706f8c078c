package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation/staged"
)

// build has the commands of a staged build: the same stages in one process, or task by task under any scheduler.
func (a *app) build() *cobra.Command {
	cmd := &cobra.Command{Use: "build", Short: "Make a new generation as tasks, in this process or by any scheduler",
		Long: `Make a new generation of everything committed so far as tasks over fixed
partitions of the graph. No task holds the graph in memory, and any process that
has the store and the configuration can do any task, in any order within a stage,
once or several times: the bytes are the same.

  giantstream build run                              all of it, here
  giantstream build plan                             the stages, and the tasks of each
  giantstream build stage S --partition i --generation g     one task

docs/BUILD.md has the contract for schedulers, and examples.`,
		Example: "  giantstream build run -c pipeline.yaml\n  giantstream build plan -c pipeline.yaml --json",
		Args:    cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.buildPlan(), a.buildStage(), a.buildRun())
	return cmd
}

// beginFlags say how a build is divided when it begins.
type beginFlags struct {
	encoder            encoderFlags
	partitions, sample int
	trainers           int
}

func (f *beginFlags) register(cmd *cobra.Command) {
	f.encoder.register(cmd)
	cmd.Flags().IntVar(&f.partitions, "partitions", 0,
		"divide the nodes into so many partitions, a power of two (default: as many as the graph needs)")
	cmd.Flags().IntVar(&f.sample, "sample", 0,
		"train and evaluate the encoder on at most so many nodes (default: 262144, or what the memory limit allows)")
	cmd.Flags().IntVar(&f.trainers, "trainers", 1,
		"have so many tasks train the encoder together, 1 to 8: the same bytes, and each holds the sample")
}

// worker returns what does the tasks of a pipeline, with writes to store.
func (p *pipeline) worker(store sink.Store) *staged.Worker {
	return &staged.Worker{Store: store, Resources: wiring.ResourcesOf(p.cfg, p.device, p.progress, p.log),
		CheckpointEvery: p.cfg.Train.CheckpointEvery,
		Log: func(ctx context.Context, cut map[int]int64) (staged.Log, error) {
			at, err := logview.At(ctx, p.store, p.id.Shards, cut)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		}}
}

// begin begins a staged build whose processes do so many tasks at a time, or finds the one that is unfinished.
func (p *pipeline) begin(ctx context.Context, w *staged.Worker, f *beginFlags, atATime int) (staged.Plan, error) {
	now, err := logview.At(ctx, p.store, p.id.Shards, nil)
	if err != nil {
		return staged.Plan{}, err
	}
	return w.Begin(ctx, p.builder(w.Store), staged.Options{Cut: now.Cut(), Shards: p.id.Shards,
		Partitions: f.partitions, Sample: f.sample, Trainers: f.trainers, AtATime: atATime})
}

func (a *app) buildPlan() *cobra.Command {
	var (
		flags  pipelineFlags
		begin  beginFlags
		asJSON bool
	)
	cmd := &cobra.Command{Use: "plan", Short: "Begin a build and print its stages and tasks", Args: cobra.NoArgs,
		Long: `Begin a new generation as a staged build (or find the unfinished one), and print
its stages in the order in which they have to be done. The tasks of a stage are
numbered from 0 and need nothing of each other.`,
		Example: "  giantstream build plan --store ./out --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.holding(cmd.Context(), &flags, &begin.encoder, false,
				func(ctx context.Context, pipe *pipeline, store sink.Store) error {
					plan, err := pipe.begin(ctx, pipe.worker(store), &begin, 1)
					if err != nil {
						return err
					}
					if asJSON {
						return writeJSON(a.out, struct {
							staged.Plan
							Stages []staged.Stage `json:"stages"`
						}{plan, plan.Stages()})
					}
					return a.printPlan(plan)
				})
		}}
	flags.register(cmd)
	begin.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan as JSON")
	return cmd
}

func (a *app) printPlan(plan staged.Plan) error {
	p := &printer{out: a.out}
	p.heading("Generation %d: %s, %s of labels, an encoder of at most %d nodes", plan.Generation,
		plural(plan.Partitions, "partition"), plural(plan.Ranges, "range"), plan.Sample)
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STAGE\tTASKS\tREADS\tDOES")
	for _, s := range plan.Stages() {
		reads := strings.Join(s.Reads, " ")
		if reads == "" {
			reads = "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Name, s.Tasks, reads, s.Does)
	}
	p.keep(w.Flush())
	return p.err
}

func (a *app) buildStage() *cobra.Command {
	var (
		flags      pipelineFlags
		partition  int
		generation int64
	)
	cmd := &cobra.Command{Use: "stage STAGE", Short: "Do one task of a build", Args: cobra.ExactArgs(1),
		Long: `Do one task of a build that 'giantstream build plan' has begun. A task that is
done already is not done again. Every stage before it must be done.

The exit code is 0 when the task is done, 2 when there is no such task, and 1
when it failed: do it again, as often as you like.`,
		Example: "  giantstream build stage vectorise --partition 12 --generation 7 --store ./out",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if generation < 1 || partition < 0 {
				return usageError{errors.New("a task takes --partition, from 0, and --generation, from 1: " +
					"'giantstream build plan' prints both")}
			}
			task := tasks.Task{Generation: generation, Stage: args[0], Partition: partition}
			pipe, err := a.open(ctx, &flags)
			if err != nil {
				return err
			}
			closeDevice, err := a.openDevice(pipe.workplace)
			if err != nil {
				return err
			}
			defer closeDevice()
			w := pipe.worker(pipe.store)
			err = tasks.Local{Workers: 1}.Run(ctx, []tasks.Task{task}, w)
			if errors.Is(err, staged.ErrNoPlan) || errors.Is(err, staged.ErrNoTask) {
				return usageError{err}
			}
			return err
		}}
	flags.register(cmd)
	cmd.Flags().IntVar(&partition, "partition", -1, "number of the task within its stage")
	cmd.Flags().Int64Var(&generation, "generation", 0, "generation that is built")
	return cmd
}

// The engines of 'build run'.
const (
	engineLocal = "local"
	engineKafka = "kafka"
)

// queue connects to the cluster through which tasks are handed out, until the returned function is called.
func (p *pipeline) queue(ctx context.Context) (q taskqueue.Queue, disconnect func(), err error) {
	if p.cfg.Kafka.Embedded() {
		return q, nil, usageError{errors.New("--engine kafka needs a cluster that workers reach: set kafka.brokers")}
	}
	c, err := wiring.Connect(ctx, p.cfg)
	if err != nil {
		return q, nil, err
	}
	return wiring.TaskQueue(p.cfg, c, p.log), c.Close, nil
}

func (a *app) buildRun() *cobra.Command {
	var (
		flags   pipelineFlags
		begin   beginFlags
		workers int
		engine  string
		asJSON  bool
	)
	cmd := &cobra.Command{Use: "run", Short: "Do all tasks of a build", Args: cobra.NoArgs,
		Long: `Make a new generation as a staged build, or finish the unfinished one: what is
done already is not done again. Memory grows with the partitions that are worked
on at the same time, and with the sample that the encoder is trained on, not with
the graph.

With --engine kafka this process hands the tasks out through a share group (Apache
Kafka 4.2 or newer), and does none: processes with 'giantstream run --roles build'
do them, on as many machines as there are. They may come, go and be killed.`,
		Example: "  giantstream build run --store ./out --workers 2\n" +
			"  giantstream build run -c pipeline.yaml --engine kafka",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if workers < 0 {
				return usageError{fmt.Errorf("--workers %d: use 1 or more, or 0 for one per core", workers)}
			}
			if engine != engineLocal && engine != engineKafka {
				return usageError{fmt.Errorf("--engine %q: use %s or %s", engine, engineLocal, engineKafka)}
			}
			if engine == engineKafka && workers != 0 {
				return usageError{errors.New("--workers is for --engine local; with kafka, start as many as you like")}
			}
			return a.holding(cmd.Context(), &flags, &begin.encoder, engine == engineLocal,
				func(ctx context.Context, pipe *pipeline, store sink.Store) error {
					w := pipe.worker(store)
					atATime := cmp.Or(workers, runtime.GOMAXPROCS(0))
					var by tasks.Engine = tasks.Local{Workers: atATime}
					if engine == engineKafka {
						queue, disconnect, err := pipe.queue(ctx)
						if err != nil {
							return err
						}
						defer disconnect()
						by, atATime = &taskqueue.Engine{Queue: queue}, 1
					}
					plan, err := pipe.begin(ctx, w, &begin, atATime)
					if err != nil {
						return err
					}
					watch := &staged.Watch{Work: w, Log: pipe.log, Progress: pipe.progress}
					doc, err := w.Run(ctx, plan, by, watch, watch.Stage)
					pipe.progress.Done()
					if err != nil {
						return err
					}
					if asJSON {
						return writeJSON(a.out, doc)
					}
					p := &printer{out: a.out}
					p.heading("Generation %d is %s", doc.Generation, doc.Status)
					printGraph(p, doc)
					printTree(p, doc)
					p.line("")
					printEvaluation(p, doc)
					printGate(p, doc)
					return p.err
				})
		}}
	flags.register(cmd)
	begin.register(cmd)
	cmd.Flags().StringVar(&engine, "engine", engineLocal,
		"who does the tasks: "+engineLocal+", this process, or "+engineKafka+", the processes with role build")
	cmd.Flags().IntVar(&workers, "workers", 0, "do so many tasks at a time, 0 for one per core")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the generation's document as JSON")
	return cmd
}
