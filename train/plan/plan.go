package plan

import (
	"errors"
	"fmt"
	"math"

	"giantstream/featurize/pifa"
	"giantstream/train/generation/build/stages"
)

// Input is a graph, and the machines that build it.
type Input struct {
	// Edges lead in both directions, each counts once here.
	Nodes, Edges, TextBytes int64
	// Classes of the nodes, which evaluate asks about.
	Classes int
	// Workers are machines; each has Cores and Memory bytes, and moves Bandwidth bytes a second to and from the store.
	Workers, Cores int
	Memory         int64
	Bandwidth      float64
	// Shards of the commit log.
	Shards int
	// Features, Fill and Refresh are builds with optional stages: features other than PIFA, embeddings from neighbours,
	// and a generation before.
	Features, Fill, Refresh bool
	Prices                  Prices
}

// Prices are in one currency, whichever it is.
type Prices struct {
	CoreHour float64
	// GBMonth is the price of 10⁹ bytes in the store for 30 days.
	GBMonth float64
}

// Stage is the estimate of a stage.
type Stage struct {
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
	// ReadBytes and WrittenBytes are what all its tasks move from and to the store. ShuffledBytes are those read that
	// tasks of other partitions wrote.
	ReadBytes     int64 `json:"read_bytes"`
	WrittenBytes  int64 `json:"written_bytes"`
	ShuffledBytes int64 `json:"shuffled_bytes"`
	// Memory of one task with the program and its models, and of all tasks that a machine does at a time.
	Memory      int64   `json:"memory_bytes"`
	Machine     int64   `json:"machine_memory_bytes"`
	CoreSeconds float64 `json:"core_seconds"`
	Seconds     float64 `json:"seconds"`
	Money       float64 `json:"money"`
}

// Plan is the estimate of a build.
type Plan struct {
	Partitions int `json:"partitions"`
	Ranges     int `json:"ranges"`
	// Spread: projected texts are written to the ranges that need them.
	Spread bool `json:"spread,omitempty"`
	// AtATime is how many tasks a machine does at a time, which share featurize.memory_limit.
	AtATime int     `json:"tasks_at_a_time"`
	Stages  []Stage `json:"stages"`
	// Total is the sum over the stages; its memory is the greatest.
	Total Stage `json:"total"`
}

// ErrTooSmall: no division of the graph fits the machines' memory.
var ErrTooSmall = errors.New("the machines have too little memory for this graph")

const (
	minute        = 60.0
	monthSeconds  = 30 * 24 * 60 * minute
	maxPartitions = 1 << 12
	most          = 1e12 // nodes, and edges; sums of bytes would not fit an int64 with many more
	mostText      = 1e18
)

// Validate reports every fault of an input.
func (in Input) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"nodes", float64(in.Nodes)}, {"workers", float64(in.Workers)}, {"cores", float64(in.Cores)},
		{"memory", float64(in.Memory)}, {"bandwidth", in.Bandwidth}, {"shards", float64(in.Shards)},
	} {
		if !(f.value > 0) || math.IsInf(f.value, 0) {
			errs = append(errs, fmt.Errorf("%s must be above 0, got %g", f.name, f.value))
		}
	}
	if in.Edges < 0 || in.TextBytes < 0 || in.Classes < 0 || !(in.Prices.CoreHour >= 0) || !(in.Prices.GBMonth >= 0) {
		errs = append(errs, errors.New("edges, text bytes, classes and prices must not be negative"))
	}
	if max(in.Nodes, in.Edges) > most || in.TextBytes > mostText {
		errs = append(errs, errors.New("a graph has at most 1e12 nodes, 1e12 edges and 1e18 bytes of text"))
	}
	return errors.Join(errs...)
}

func (in Input) graph() Graph {
	return Graph{Nodes: in.Nodes, TextBytes: in.TextBytes, References: 2 * in.Edges, Links: 2 * in.Edges,
		Classes: in.Classes}
}

// Estimate estimates a build with the number of tasks at a time that makes it fastest. The error is ErrTooSmall if not
// even one task at a time fits, with any number of partitions.
func Estimate(in Input, c Calibration) (*Plan, error) {
	if err := c.suits(in); err != nil {
		return nil, err
	}
	var best *Plan
	var failed error
	for atATime := 1; atATime <= in.Cores; atATime++ {
		p, err := fits(in, c, atATime)
		switch {
		case err == nil && (best == nil || p.Total.Seconds < best.Total.Seconds):
			best = p
		case err != nil && !errors.Is(err, ErrTooSmall):
			return nil, err
		case err != nil && failed == nil:
			failed = err
		}
	}
	if best == nil {
		return nil, failed
	}
	return best, nil
}

// suits says whether the rates tell what the input costs.
func (c Calibration) suits(in Input) error {
	err := errors.Join(in.Validate(), c.Validate())
	if in.Classes > 0 && c.Graph.Classes == 0 {
		err = errors.Join(err, errors.New("the rates are of a graph without classes, and do not say what these cost"))
	}
	return err
}

// Divided estimates a build that is divided already, one task at a time.
func Divided(in Input, c Calibration, division stages.Plan) (*Plan, error) {
	if err := c.suits(in); err != nil {
		return nil, err
	}
	p, _ := estimate(in, c, division, 1)
	return p, nil
}

// fits estimates a build with atATime tasks at a time, in the fewest partitions that fit the memory.
func fits(in Input, c Calibration, atATime int) (*Plan, error) {
	each := stages.SplitRows(in.Nodes)
	size := stages.Size{Rows: in.Nodes, Bytes: in.TextBytes + rowBytes*in.Nodes, Dim: c.Dim,
		Nodes: in.Nodes, Links: 2 * in.Edges, Memory: in.Memory, AtATime: atATime,
		Splits: make([]stages.Split, max(int64(in.Shards), (in.Nodes+each-1)/each))}
	division, err := stages.NewPlan(1, in.Shards, size, 0, 0)
	for ; err == nil; division, err = stages.NewPlan(1, in.Shards, size, 2*division.Partitions, 0) {
		division.Fill, division.Parent = in.Fill, in.Refresh
		if in.Features {
			division.Features = pifa.PIFAIdentity
		}
		p, largest := estimate(in, c, division, atATime)
		if largest.Machine <= in.Memory {
			p.AtATime = atATime
			return p, nil
		}
		if division.Partitions >= maxPartitions || largest.Tasks == 1 || largest.Name == stages.Scatter {
			return nil, fmt.Errorf("%w: a task of %s needs %d MiB of %d; give each machine more",
				ErrTooSmall, largest.Name, largest.Memory>>20, in.Memory>>20)
		}
	}
	return nil, err
}

// estimate returns the estimate for a division, and its stage that takes the most memory.
func estimate(in Input, c Calibration, division stages.Plan, atATime int) (*Plan, Stage) {
	p := &Plan{Partitions: division.Partitions, Ranges: division.Ranges, Spread: division.Spread,
		Total: Stage{Name: "total"}}
	var largest Stage
	stored := 0.0
	t := &p.Total
	for _, s := range division.Stages() {
		e := stage(in, c, division, s, atATime)
		stored += float64(e.WrittenBytes)
		e.Money = float64(in.Workers*in.Cores)*e.Seconds/3600*in.Prices.CoreHour +
			stored/1e9*e.Seconds/monthSeconds*in.Prices.GBMonth
		p.Stages = append(p.Stages, e)
		t.Tasks += e.Tasks
		t.ReadBytes += e.ReadBytes
		t.WrittenBytes += e.WrittenBytes
		t.ShuffledBytes += e.ShuffledBytes
		t.CoreSeconds += e.CoreSeconds
		t.Seconds += e.Seconds
		t.Money += e.Money
		t.Memory, t.Machine = max(t.Memory, e.Memory), max(t.Machine, e.Machine)
		if e.Machine > largest.Machine {
			largest = e
		}
	}
	return p, largest
}

func stage(in Input, c Calibration, division stages.Plan, s stages.Stage, atATime int) Stage {
	r, g := c.Stages[s.Name], in.graph()
	machines := min(in.Workers, s.Tasks)
	q := quantities(g, c, division, machines)
	read := r.ReadBytes.costOf(q)
	e := Stage{Name: s.Name, Tasks: s.Tasks, CoreSeconds: r.CoreSeconds.costOf(q),
		WrittenBytes:  int64(r.WrittenBytes.costOf(q)),
		ReadBytes:     int64(read) + int64(machines)*int64(r.modelBytes(s.Name, float64(in.Nodes))),
		ShuffledBytes: int64(r.Shuffled * read)}
	each := (s.Tasks + machines - 1) / machines // tasks of a machine
	atATime = min(atATime, each)
	shared, own := memory(g, c.ProjectionDim, c.Dim, division, s.Name)
	e.Memory, e.Machine = shared+own, shared+int64(atATime)*own
	cores := float64(in.Cores) / float64(atATime)
	task := e.CoreSeconds / float64(s.Tasks) * ((1 - r.Parallel) + r.Parallel/cores)
	network := float64(e.ReadBytes+e.WrittenBytes) / float64(machines) / in.Bandwidth
	e.Seconds = max(math.Ceil(float64(each)/float64(atATime))*task, network)
	return e
}
