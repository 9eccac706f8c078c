package bag

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/xmc"
)

// Data is what Train learns from.
type Data struct {
	// Features is Ψ of every node's text, n rows.
	Features Features
	// Neighbours is the adjacency: row i are the labels of instance i.
	Neighbours *sparse.Matrix
	// Tree clusters the labels, and Labels holds their PIFA, normalised,
	// n×Dim: the heads start from both.
	Tree   xmc.Tree
	Labels []float32
	Dim    int
	// Projection and Weights are the linear solution (Rank×Dim) to start
	// from; unused by InitRandom.
	Projection train.Projection
	Weights    []float32
}

// Features are the rows of Ψ: a *sparse.Matrix, or one that is not in memory.
// Row i must be the same whenever it is asked for, and safe to ask for from
// several goroutines.
type Features interface {
	Size() (rows, cols int)
	Row(i int) sparse.Vector
}

// Init says where the n-grams' vectors start.
type Init uint8

// The starts.
const (
	InitLinear Init = iota // at the linear encoder's solution
	InitRandom             // at small random vectors
)

// Schedule says in which order the levels are trained.
type Schedule uint8

// The schedules.
const (
	Joint        Schedule = iota // all levels in every step
	CoarseToFine                 // one level after the other, epochs shared evenly
)

// Options of Train. The zero value of each field stands for its default.
type Options struct {
	// Epochs is how often training goes through the instances; 0 means 10.
	Epochs int
	// Batch is the number of instances per step; 0 means 256.
	Batch int
	// TableRate and HeadRate are the first steps' learning rates; 0 means
	// 0.01 and 0.001.
	TableRate, HeadRate float64
	// Keep is the probability that an n-gram takes part; 0 means 0.5.
	Keep float64
	// MaxRows bounds the table: the n-grams in most texts have vectors, the
	// others count for nothing; 0 means 65,536 (64 MiB at 256 dimensions).
	MaxRows int
	// MaxDegree: nodes with more labels are no instances; 0 means 1000.
	MaxDegree int
	// Patience is how many epochs without a better score on the held-out
	// instances end the training; 0 means 3.
	Patience int
	Init     Init
	Schedule Schedule
	Seed     uint64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

func (o Options) withDefaults() Options {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	setF := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.Epochs, 10)
	set(&o.Batch, 256)
	set(&o.MaxRows, 1<<16)
	set(&o.MaxDegree, 1000)
	set(&o.Patience, 3)
	setF(&o.TableRate, 0.01)
	setF(&o.HeadRate, 0.001)
	setF(&o.Keep, 0.5)
	return o
}

func (d Data) check(o Options) error {
	n := d.Neighbours.Rows
	rows, _ := d.Features.Size()
	switch {
	case rows != n:
		return fmt.Errorf("bag: %d rows of features, %d of neighbours", rows, n)
	case d.Dim < 1 || len(d.Labels) != n*d.Dim:
		return fmt.Errorf("bag: %d numbers are not %d labels of dimension %d", len(d.Labels), n, d.Dim)
	case o.Init == InitLinear && (d.Projection == nil || len(d.Weights) != d.Projection.Dim()*d.Dim):
		return fmt.Errorf("bag: %d weights are not a linear solution to dimension %d", len(d.Weights), d.Dim)
	case o.Epochs < 1 || o.Batch < 1 || o.MaxRows < 1 || o.MaxDegree < 1 || o.Patience < 1:
		return fmt.Errorf("bag: epochs, batch, rows, degree and patience must be positive: %+v", o)
	case o.Keep <= 0 || o.Keep > 1 || o.TableRate < 0 || o.HeadRate < 0:
		return fmt.Errorf("bag: keep must be in (0, 1] and rates not negative: %+v", o)
	}
	return nil
}

// Report says how training went.
type Report struct {
	Instances int `json:"instances"`
	HeldOut   int `json:"held_out"`
	// Rows is the number of n-grams that have a vector.
	Rows int `json:"rows"`
	// Level is D, the level whose training gave the embeddings; with the
	// joint schedule the finest.
	Level int `json:"level"`
	// Best is the epoch (from 1) whose weights were kept; 0 is the start.
	Best   int     `json:"best_epoch"`
	Epochs []Epoch `json:"epochs"`
	// Levels are the matcher's precision and recall on held-out instances.
	Levels []xmc.LevelMetrics `json:"levels"`
	// Resumed is the step that training was resumed after, 0 if from the start.
	Resumed int64 `json:"resumed_step,omitempty"`
}

// Epoch is one pass over the instances.
type Epoch struct {
	// Levels is how many levels took part.
	Levels int `json:"levels"`
	// Loss is the mean training loss (not comparable between schedules).
	Loss float64 `json:"loss"`
	// HeldOutAUC is how surely held-out instances are nearer to their
	// neighbours than to nodes drawn by degree; 0 when none are held out.
	HeldOutAUC float64 `json:"held_out_auc,omitempty"`
}
