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

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// buildCommand has the commands that make generations: in this process, or task by task under any scheduler.
func buildCommand(a *command.App) *cobra.Command {
	cmd := makingCommand(a, &making{until: stages.Finish}, &cobra.Command{Use: "build",
		Short: "Make a new generation: all of it, or up to a stage",
		Long: `Make a new generation of everything committed so far, or finish the unfinished
one: what is done already is not done again. A running pipeline takes it up and
publishes it.

A generation is made by tasks over fixed partitions of the graph. No task holds
the graph in memory: memory grows with the partitions that are worked on at the
same time, and with the sample that the encoder is trained on.

--until stops after a stage: 'dataset' when the training set is written, for
example to train on it with a trainer of your own; 'encoder' when the encoder is
trained. 'giantstream build plan' lists the stages.

With --engine kafka this process hands the tasks out through a share group (Apache
Kafka 4.2 or newer), and does none: processes with 'giantstream run --roles build'
do them, on as many machines as there are. They may come, go and be killed. Any
other scheduler can do the tasks by 'giantstream build stage': docs/BUILD.md has
the contract, and examples.`,
		Example: "  giantstream build --store ./out\n" +
			"  giantstream build --store ./out --until encoder --encoder bert --model ./all-MiniLM-L6-v2\n" +
			"  giantstream build -c pipeline.yaml --engine kafka"})
	run := makingCommand(a, &making{until: stages.Finish}, &cobra.Command{Use: "run"})
	cmd.AddCommand(buildPlan(a), buildStage(a), renamed(a, run, "build"))
	return cmd
}

// renamed hides a command that has another name now, and hints at it where it is used.
func renamed(a *command.App, cmd *cobra.Command, now string) *cobra.Command {
	cmd.Hidden, cmd.Short, cmd.Long = true, "Is called '"+"giantstream "+now+"' now", ""
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fmt.Fprintf(a.Err, "'%s' is called 'giantstream %s' now\n", cmd.CommandPath(), now)
		return run(cmd, args)
	}
	return cmd
}

// oldNames are the commands that build has taken over.
func oldNames(a *command.App) []*cobra.Command {
	return []*cobra.Command{
		renamed(a, makingCommand(a, &making{until: stages.Dataset}, &cobra.Command{Use: "fit"}),
			"build --until dataset"),
		renamed(a, makingCommand(a, &making{until: stages.Encoder}, &cobra.Command{Use: "train"}),
			"build --until encoder"),
		renamed(a, makingCommand(a, &making{until: stages.Finish}, &cobra.Command{Use: "embed"}), "build"),
	}
}

// beginFlags say how a build is divided when it begins.
type beginFlags struct {
	encoder            command.EncoderFlags
	partitions, sample int
	trainers           int
}

func (f *beginFlags) register(cmd *cobra.Command) {
	f.encoder.Register(cmd)
	cmd.Flags().IntVar(&f.partitions, "partitions", 0,
		"divide the nodes into so many partitions, a power of two (default: as many as the graph needs)")
	cmd.Flags().IntVar(&f.sample, "sample", 0,
		"train and evaluate the encoder on at most so many nodes (default: 262144, or what the memory limit allows)")
	cmd.Flags().IntVar(&f.trainers, "trainers", 1,
		"have so many tasks train the encoder together, 1 to 8: the same bytes, and each holds the sample")
}

// workerOf returns what does the tasks of a pipeline, with writes to store.
func workerOf(p *command.Pipeline, store sink.Store) *build.Worker {
	return &build.Worker{Means: work.Means{Store: store,
		Resources:       wiring.ResourcesOf(p.Config, p.Device, p.Progress, p.Log),
		CheckpointEvery: p.Config.Train.CheckpointEvery,
		Log: func(ctx context.Context, cut map[int]int64) (work.Log, error) {
			at, err := logview.OpenCut(ctx, p.Store, p.Identity.Shards, cut)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		}}}
}

// beginBuild begins a build, or finds the unfinished one. Each of its processes does atATime tasks at once.
func beginBuild(ctx context.Context, p *command.Pipeline, w *build.Worker, f *beginFlags, atATime int) (
	stages.Plan, error) {
	r := wiring.RequestOf(p.Config)
	r.Shards, r.Partitions, r.Sample = p.Identity.Shards, f.partitions, f.sample
	r.Trainers, r.AtATime = f.trainers, atATime
	return w.Begin(ctx, r)
}

func buildPlan(a *command.App) *cobra.Command {
	var (
		flags  command.PipelineFlags
		begin  beginFlags
		asJSON bool
	)
	cmd := &cobra.Command{Use: "plan", Short: "Begin a build and print its stages and tasks", Args: cobra.NoArgs,
		Long: `Begin a new generation (or find the unfinished one), and print
its stages in the order in which they have to be done. The tasks of a stage are
numbered from 0 and need nothing of each other.`,
		Example: "  giantstream build plan --store ./out --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return holding(cmd.Context(), a, &flags, &begin.encoder, false,
				func(ctx context.Context, pipe *command.Pipeline, store sink.Store) error {
					plan, err := beginBuild(ctx, pipe, workerOf(pipe, store), &begin, 1)
					if err != nil {
						return err
					}
					if asJSON {
						return command.WriteJSON(a.Out, struct {
							stages.Plan
							Stages []stages.Stage `json:"stages"`
						}{plan, plan.Stages()})
					}
					return printPlan(a, plan)
				})
		}}
	flags.Register(cmd)
	begin.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan as JSON")
	return cmd
}

func printPlan(a *command.App, plan stages.Plan) error {
	p := &command.Printer{Out: a.Out}
	p.Heading("Generation %d: %s, %s of labels, an encoder of at most %d nodes", plan.Generation,
		command.Plural(plan.Partitions, "partition"), command.Plural(plan.Ranges, "range"), plan.Sample)
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STAGE\tTASKS\tREADS\tDOES")
	for _, s := range plan.Stages() {
		reads := strings.Join(s.Reads, " ")
		if reads == "" {
			reads = "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Name, s.Tasks, reads, s.Does)
	}
	p.Keep(w.Flush())
	return p.Err
}

func buildStage(a *command.App) *cobra.Command {
	var (
		flags     command.PipelineFlags
		partition int
		number    int64
	)
	cmd := &cobra.Command{Use: "stage STAGE", Short: "Do one task of a build", Args: cobra.ExactArgs(1),
		Long: `Do one task of a build that 'giantstream build plan' has begun. A task that is
done already is not done again. Every stage before it must be done.

The exit code is 0 when the task is done, 2 when there is no such task, and 1
when it failed: do it again, as often as you like.`,
		Example: "  giantstream build stage vectorise --partition 12 --generation 7 --store ./out",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if number < 1 || partition < 0 {
				return command.UsageError(errors.New("a task takes --partition, from 0, and --generation, from 1: " +
					"'giantstream build plan' prints both"))
			}
			task := tasks.Task{Generation: number, Stage: args[0], Partition: partition}
			pipe, err := a.Open(ctx, &flags)
			if err != nil {
				return err
			}
			closeDevice, err := a.OpenDevice(pipe.Workplace)
			if err != nil {
				return err
			}
			defer closeDevice()
			w := workerOf(pipe, pipe.Store)
			err = tasks.Local{Workers: 1}.Run(ctx, []tasks.Task{task}, w)
			if errors.Is(err, stages.ErrNoPlan) || errors.Is(err, stages.ErrNoTask) {
				return command.UsageError(err)
			}
			return err
		}}
	flags.Register(cmd)
	cmd.Flags().IntVar(&partition, "partition", -1, "number of the task within its stage")
	cmd.Flags().Int64Var(&number, "generation", 0, "generation that is built")
	return cmd
}

// The engines of a build.
const (
	engineLocal = "local"
	engineKafka = "kafka"
)

// connectQueue connects to the cluster through which tasks are handed out, until the returned function is called.
func connectQueue(ctx context.Context, p *command.Pipeline) (q taskqueue.Queue, disconnect func(), err error) {
	if p.Config.Kafka.Embedded() {
		return q, nil, command.UsageError(
			errors.New("--engine kafka needs a cluster that workers reach: set kafka.brokers"))
	}
	c, err := wiring.Connect(ctx, p.Config)
	if err != nil {
		return q, nil, err
	}
	return wiring.TaskQueue(p.Config, c, p.Log), c.Close, nil
}

// making is what the flags of a command that makes a generation say.
type making struct {
	flags   command.PipelineFlags
	begin   beginFlags
	until   string
	engine  string
	workers int
	asJSON  bool
	// before, if not nil, is called with the lease, before the build begins.
	before func(context.Context, *command.Pipeline, sink.Store) error
}

// makingCommand makes cmd a command that makes a generation up to a stage.
func makingCommand(a *command.App, m *making, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := m.check(); err != nil {
			return err
		}
		var doc *generation.Doc
		trains := m.engine == engineLocal && m.until != stages.Dataset
		err := holding(cmd.Context(), a, &m.flags, &m.begin.encoder, trains,
			func(ctx context.Context, pipe *command.Pipeline, store sink.Store) (err error) {
				if m.before != nil {
					if err := m.before(ctx, pipe, store); err != nil {
						return err
					}
				}
				doc, err = m.run(ctx, pipe, store)
				return err
			})
		if errors.Is(err, stages.ErrNoTask) {
			return command.UsageError(fmt.Errorf("--until %s: %w", m.until, err))
		}
		if err != nil {
			return err
		}
		if m.asJSON {
			return command.WriteJSON(a.Out, doc)
		}
		p := &command.Printer{Out: a.Out}
		p.Heading("Generation %d is %s", doc.Generation, doc.Status)
		printGraph(p, doc)
		printTree(p, doc)
		if doc.Complete() {
			p.Line("")
			printEvaluation(p, doc)
			printGate(p, doc)
		}
		return p.Err
	}
	m.flags.Register(cmd)
	m.begin.register(cmd)
	cmd.Flags().StringVar(&m.until, "until", m.until, "stop after this stage, such as dataset or encoder")
	cmd.Flags().StringVar(&m.engine, "engine", engineLocal,
		"who does the tasks: "+engineLocal+", this process, or "+engineKafka+", the processes with role build")
	cmd.Flags().IntVar(&m.workers, "workers", 0, "do so many tasks at a time, 0 for one per core")
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print the generation's document as JSON")
	return cmd
}

func (m *making) check() error {
	switch {
	case m.workers < 0:
		return command.UsageError(fmt.Errorf("--workers %d: use 1 or more, or 0 for one per core", m.workers))
	case m.engine != engineLocal && m.engine != engineKafka:
		return command.UsageError(fmt.Errorf("--engine %q: use %s or %s", m.engine, engineLocal, engineKafka))
	case m.engine == engineKafka && m.workers != 0:
		return command.UsageError(
			errors.New("--workers is for --engine local; with kafka, start as many as you like"))
	}
	return nil
}

// run makes the generation, and returns its document.
func (m *making) run(ctx context.Context, pipe *command.Pipeline, store sink.Store) (*generation.Doc, error) {
	w := workerOf(pipe, store)
	atATime := cmp.Or(m.workers, runtime.GOMAXPROCS(0))
	var by tasks.Engine = tasks.Local{Workers: atATime}
	if m.engine == engineKafka {
		queue, disconnect, err := connectQueue(ctx, pipe)
		if err != nil {
			return nil, err
		}
		defer disconnect()
		by, atATime = &taskqueue.Engine{Queue: queue}, 1
	}
	plan, err := beginBuild(ctx, pipe, w, &m.begin, atATime)
	if err != nil {
		return nil, err
	}
	watch := &build.Watch{Work: w, Log: pipe.Log, Progress: pipe.Progress}
	return w.Run(ctx, plan, by, watch, watch.Stage, m.until)
}

// holding opens the pipeline, and calls do while it holds the lease of those who build, with a store whose writes
// check the lease. device: do trains.
func holding(ctx context.Context, a *command.App, flags *command.PipelineFlags, encoder *command.EncoderFlags,
	device bool, do func(context.Context, *command.Pipeline, sink.Store) error) error {
	pipe, err := a.Open(ctx, flags, encoder.Apply)
	if err != nil {
		return err
	}
	if device {
		closeDevice, err := a.OpenDevice(pipe.Workplace)
		if err != nil {
			return err
		}
		defer closeDevice()
	}
	held, err := refreshing.HoldRefresh(ctx, pipe.Store, pipe.Log)
	if err != nil {
		return err
	}
	ctx, release := held.Keep(ctx)
	defer release()
	err = do(ctx, pipe, held.Store())
	pipe.Progress.Done()
	if lost := context.Cause(ctx); err != nil && errors.Is(lost, lease.ErrLost) {
		return lost
	}
	return err
}
