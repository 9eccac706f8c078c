package plan

import (
	"errors"
	"fmt"
	"math"

	"giantstream/train/generation/staged"
)

// Input is a graph, and the machines that build it.
type Input struct {
	Nodes, Edges, TextBytes int64
	// Workers are machines; each has Cores and Memory bytes, and moves Bandwidth bytes a second to and from the store.
	Workers, Cores int
	Memory         int64
	Bandwidth      float64
	// Dim is embedding.dim, ProjectionDim featurize.projection_dim.
	Dim, ProjectionDim int
	// Shards of the commit log.
	Shards int
	Prices Prices
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
	// ReadBytes and WrittenBytes are what all its tasks move from and to the store.
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
	// Memory of one task, in bytes.
	Memory      int64   `json:"memory_bytes"`
	CoreSeconds float64 `json:"core_seconds"`
	Seconds     float64 `json:"seconds"`
	Money       float64 `json:"money"`
}

// Plan is the estimate of a build.
type Plan struct {
	Partitions int     `json:"partitions"`
	Ranges     int     `json:"ranges"`
	Stages     []Stage `json:"stages"`
	// Total is the sum over the stages; its Memory is the greatest.
	Total Stage `json:"total"`
}

// ErrTooSmall: no division of the graph fits the machines' memory.
var ErrTooSmall = errors.New("the machines have too little memory for this graph")

const (
	minute        = 60.0
	monthSeconds  = 30 * 24 * 60 * minute
	maxPartitions = 1 << 12
)

// Validate reports every fault of an input.
func (in Input) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"nodes", float64(in.Nodes)}, {"workers", float64(in.Workers)}, {"cores", float64(in.Cores)},
		{"memory", float64(in.Memory)}, {"bandwidth", in.Bandwidth}, {"dim", float64(in.Dim)},
		{"projection dimension", float64(in.ProjectionDim)}, {"shards", float64(in.Shards)},
	} {
		if !(f.value > 0) || math.IsInf(f.value, 0) {
			errs = append(errs, fmt.Errorf("%s must be above 0, got %g", f.name, f.value))
		}
	}
	if in.Edges < 0 || in.TextBytes < 0 || !(in.Prices.CoreHour >= 0) || !(in.Prices.GBMonth >= 0) {
		errs = append(errs, errors.New("edges, text bytes and prices must not be negative"))
	}
	return errors.Join(errs...)
}

// Of estimates a build. It is ErrTooSmall if a task would not fit whatever the number of partitions.
func Of(in Input, rates Rates) (*Plan, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	each := staged.SplitRows(in.Nodes)
	size := staged.Size{Rows: in.Nodes, Bytes: in.TextBytes + rowBytes*in.Nodes, Dim: in.Dim, Memory: in.Memory,
		Splits: make([]staged.Split, max(int64(in.Shards), (in.Nodes+each-1)/each))}
	division, err := staged.NewPlan(1, in.Shards, size, 0, 0)
	for ; err == nil; division, err = staged.NewPlan(1, in.Shards, size, 2*division.Partitions, 0) {
		p, largest := estimate(in, rates, division)
		if largest.Memory <= in.Memory {
			return p, nil
		}
		if division.Partitions >= maxPartitions || largest.Tasks == 1 || largest.Name == staged.Scatter {
			return nil, fmt.Errorf("%w: a task of %s needs %d MiB of %d; give each machine more",
				ErrTooSmall, largest.Name, largest.Memory>>20, in.Memory>>20)
		}
	}
	return nil, err
}

// rowBytes is about what a row of the commit log has beside its text.
const rowBytes = 100

// estimate returns the estimate for a division, and its stage of the largest tasks.
func estimate(in Input, rates Rates, division staged.Plan) (*Plan, Stage) {
	p := &Plan{Partitions: division.Partitions, Ranges: division.Ranges, Total: Stage{Name: "total"}}
	var largest Stage
	stored := 0.0
	for _, s := range division.Stages() {
		e := stage(in, rates[s.Name], division, s)
		stored += float64(e.WrittenBytes)
		e.Money = float64(in.Workers*in.Cores)*e.Seconds/3600*in.Prices.CoreHour +
			stored/1e9*e.Seconds/monthSeconds*in.Prices.GBMonth
		p.Stages = append(p.Stages, e)
		t := &p.Total
		t.Tasks += e.Tasks
		t.ReadBytes += e.ReadBytes
		t.WrittenBytes += e.WrittenBytes
		t.CoreSeconds += e.CoreSeconds
		t.Seconds += e.Seconds
		t.Money += e.Money
		if e.Memory > largest.Memory {
			largest = e
		}
	}
	p.Total.Memory = largest.Memory
	return p, largest
}

func stage(in Input, r Rate, division staged.Plan, s staged.Stage) Stage {
	units := driverOf(s.Name).units(in, division)
	e := Stage{Name: s.Name, Tasks: s.Tasks, CoreSeconds: r.CoreSeconds * units,
		ReadBytes: int64(r.ReadBytes * units), WrittenBytes: int64(r.WrittenBytes * units),
		Memory: memory(in, division, s.Name)}
	if s.Name == staged.PIFA {
		// Each range goes through the projections of all nodes; what was measured had one range.
		e.ReadBytes += int64(division.Ranges-1) * in.Nodes * int64(bfloat*in.Dim)
	}
	machines := min(in.Workers, s.Tasks)
	e.ReadBytes += int64(r.ModelBytes) * int64(machines)
	if s.Name == staged.Dataset {
		e.ReadBytes += treeBytes * in.Nodes * int64(machines) // the one model that grows
	}
	rounds := math.Ceil(float64(s.Tasks) / float64(machines))
	perTask := e.CoreSeconds / float64(s.Tasks) * ((1 - r.Parallel) + r.Parallel/float64(in.Cores))
	network := float64(e.ReadBytes+e.WrittenBytes) / float64(s.Tasks) / in.Bandwidth
	e.Seconds = rounds * max(perTask, network)
	return e
}

const (
	bfloat    = 2 // bytes of a number of a stored projection
	treeBytes = 4 // of a label in the stored tree
)

// driver is what the work of a stage grows with.
type driver string

const (
	constant driver = "build"
	nodes    driver = "node"
	passes   driver = "node and pass" // of trunk: one for each doubling of the branches, and three more
	links    driver = "link"
	text     driver = "text byte"
	sample   driver = "sampled node"
	counts   driver = "n-gram count" // those of all partitions
)

func driverOf(stage string) driver {
	switch stage {
	case staged.Resolve, staged.Link, staged.PIFA:
		return links
	case staged.Scatter, staged.Number, staged.Count, staged.Vectorise, staged.Dataset, staged.Encode:
		return text
	case staged.Trunk:
		return passes
	case staged.Deal, staged.Branch, staged.Tree, staged.Finish:
		return nodes
	case staged.Encoder, staged.Evaluate:
		return sample
	case staged.Merge:
		return counts
	}
	return constant // index, vectorizer and projection work on a vocabulary or sample of bounded size
}

func (d driver) units(in Input, division staged.Plan) float64 {
	switch d {
	case nodes:
		return float64(in.Nodes)
	case passes:
		return float64(in.Nodes) * (3 + math.Log2(float64(division.Partitions)))
	case links:
		return float64(2*in.Edges + in.Nodes) // both directions, and a row per node
	case text:
		return float64(in.TextBytes + rowBytes*in.Nodes)
	case sample:
		return float64(min(in.Nodes, int64(division.Sample)))
	case counts:
		// A partition has at most the n-grams of its texts, about one for four bytes, and at most a vocabulary.
		const vocabulary = 1 << 21
		perPartition := float64(in.TextBytes) / float64(division.Partitions) / 4
		return float64(division.Partitions) * min(perPartition, vocabulary)
	}
	return 1
}

// memory of a task of a stage, in bytes: docs/BUILD.md's table, with the program and its models. A partition has as
// many nodes as the graph divided by the partitions, and a fifth more, since hashes are not even.
func memory(in Input, division staged.Plan, stage string) int64 {
	const (
		program    = 160 << 20 // runtime, code, buffers of the store
		vocabulary = 300 << 20 // counts while the vectorizer is fitted, see ARCHITECTURE.md
		model      = 400 << 20 // vectorizer and projection, or an encoder
		perSampled = 2300      // of the encoder's training in one process
	)
	uneven := func(n, parts int64) int64 { return n * 6 / 5 / max(1, parts) }
	partitions := int64(division.Partitions)
	rows := uneven(in.Nodes, partitions)
	texts := uneven(in.TextBytes, partitions)
	arcs := uneven(2*in.Edges, partitions)
	dim := int64(in.Dim)
	m := int64(program)
	switch stage {
	case staged.Scatter:
		return m + 48<<20
	case staged.Number:
		return m + texts + rowBytes*rows
	case staged.Resolve, staged.Link:
		return m + 8*arcs + 12*rows
	case staged.Count:
		return m + vocabulary + texts
	case staged.Merge, staged.Vectorizer:
		return m + vocabulary
	case staged.Projection:
		return m + model
	case staged.Vectorise, staged.Encode:
		return m + model + texts + rows*int64(4*in.ProjectionDim)
	case staged.Dataset:
		return m + model + texts + 8*in.Nodes // the tree
	case staged.PIFA:
		return m + 4*dim*uneven(in.Nodes, int64(division.Ranges)) + rows*int64(4*in.ProjectionDim) + 8*arcs
	case staged.Trunk:
		return m + 8*in.Nodes
	case staged.Evaluate:
		return m + 8*dim*min(in.Nodes, int64(division.Sample))
	case staged.Deal, staged.Branch:
		return m + 8*dim*rows
	case staged.Tree:
		return m + 12*in.Nodes
	case staged.Finish:
		return m + model
	case staged.Encoder:
		return m + model + perSampled*min(in.Nodes, int64(division.Sample))
	}
	return m
}
