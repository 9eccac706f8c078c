package stages

import (
	"crypto/rand"
	"fmt"
	"math"
	"math/bits"
)

// Size is what a plan is made for.
type Size struct {
	// Rows and Bytes of the commit log at the cut, superseded rows included.
	Rows, Bytes int64
	// Splits divide the commit log.
	Splits []Split
	// Nodes and Links of the graph, about; 0 if unknown. An edge between two nodes is a link of both.
	Nodes, Links int64
	// Orders: the commit log has orders. Vectors: it has vectors of nodes.
	Orders, Vectors bool
	// Dim is the embedding dimension, and Memory what a process may take, 0 for no limit: each PIFA task reads the
	// projected texts of many nodes, so there are no more of these tasks than the memory asks for.
	Dim    int
	Memory int64
	// Ranges of labels, 0 for as many as the memory asks for.
	Ranges int
	// AtATime is how many tasks a process does at a time, and so shares the memory among; 0 is 1.
	AtATime int
}

// share is what a task may take of the memory, 0 for no limit.
func (s Size) share() int64 { return s.Memory / int64(max(1, s.AtATime)) }

// ranges is how many ranges of labels PIFA is computed for. The sums of one take about a quarter of a task's share of
// the memory, or half of what it has beyond programMemory.
func (s Size) ranges() int {
	if s.Ranges > 0 {
		return powerOfTwo(int64(s.Ranges))
	}
	most := int64(1 << 20)
	if s.Memory > 0 && s.Dim > 0 {
		most = max(s.share()/4, (s.share()-programMemory)/2) / int64(4*s.Dim)
	}
	return max(powerOfTwo(s.Rows/max(leastRange, most)), min(someRanges, powerOfTwo(s.Rows/leastRange)))
}

// SplitRows is about how many rows a split should have, of a commit log with that many.
func SplitRows(rows int64) int64 { return max(splitRows, rows/manySplits) }

// partitions is how many partitions suit a graph.
func (s Size) partitions() int {
	n := powerOfTwo(max((s.Rows+partitionRows-1)/partitionRows, s.Bytes/partitionBytes))
	if n <= manyPartitions || s.Memory <= 0 {
		return n
	}
	return min(n, max(manyPartitions, powerOfTwo(s.Bytes/max(1, s.share()/partitionShare))))
}

// sample is how many nodes the encoder is trained on at most.
func (s Size) sample() int {
	if s.Memory <= 0 {
		return DefaultSample
	}
	return int(min(DefaultSample, max(leastSample, s.Memory/4/sampleBytes)))
}

// powerOfTwo is the least power of two that is n or more, at most maxPartitions.
func powerOfTwo(n int64) int {
	if n >= maxPartitions {
		return maxPartitions
	}
	return 1 << bits.Len64(uint64(max(n, 1)-1))
}

// spreadGain: what is read and written with spread must be at most this share of what is read without, since it is a
// stage more.
const spreadGain = 0.8

// spreads says whether PIFA for that many ranges of labels reads and writes less with the stage spread. It takes all
// nodes to have the mean number of links, which overstates the ranges that they lead to.
func (s Size) spreads(ranges int) bool {
	if s.Nodes <= 0 || s.Links <= 0 || s.Dim <= 0 {
		return false
	}
	degree := float64(s.Links) / float64(s.Nodes)
	row := float64(2 * s.Dim)
	copies := Reached(ranges, degree)
	without := float64(ranges)*(row+4) + ArcBytes*degree
	with := (row + 4*degree) + 2*(copies*(row+spreadBytes)+4*degree)
	return with <= spreadGain*without
}

// Reached is the mean number of parts, of n parts of equal size, that a number of random nodes lie in.
func Reached(n int, nodes float64) float64 {
	if n <= 1 {
		return min(1, nodes)
	}
	return -float64(n) * math.Expm1(nodes*math.Log1p(-1/float64(n)))
}

// Sizes of what the stages before PIFA leave.
const (
	// ArcBytes of a known link: source and target u32, each within its partition.
	ArcBytes = 8
	// spreadBytes of a record of spread beside its labels and the row.
	spreadBytes = 8
)

// Limits of what one task holds in memory.
const (
	// partitionRows and partitionBytes are about what a partition has of a graph.
	partitionRows  = 1 << 15
	partitionBytes = 32 << 20
	maxPartitions  = 1 << 12
	// manyPartitions: in every shuffle each partition reads from all, so that beyond this number larger partitions
	// cost less than more of them, as long as one takes no more than memory/partitionShare.
	manyPartitions = 1 << 9
	partitionShare = 32
	// splitRows is about how many rows of the commit log one task deals out, if that makes no more than manySplits.
	splitRows  = 1 << 16
	manySplits = 256
	// leastRange is how many labels one PIFA task sums up at least, and someRanges how many tasks there are if the
	// graph has as many labels: several machines then have work.
	leastRange = 1 << 16
	someRanges = 8
	// programMemory is what a PIFA task takes beside the sums of its range, at most: the program, and the projected
	// texts of a partition with the garbage of those before.
	programMemory = 512 << 20
	// DefaultSample is how many nodes the encoder is trained and evaluated on at most, if the memory does not say less.
	DefaultSample = 1 << 18
	// sampleBytes is about what training takes for a node of the sample. A sample takes no more than a quarter of the
	// memory, but leastSample nodes.
	sampleBytes = 2 << 10
	leastSample = 1 << 14
)

// NewPlan divides a generation. partitions and sample may be 0: the size decides.
func NewPlan(g int64, shards int, size Size, partitions, sample int) (Plan, error) {
	if partitions == 0 {
		partitions = size.partitions()
	}
	if partitions < 1 || partitions > maxPartitions || partitions&(partitions-1) != 0 {
		return Plan{}, fmt.Errorf("%d partitions: it must be a power of two from 1 to %d", partitions, maxPartitions)
	}
	if sample == 0 {
		sample = size.sample()
	}
	if sample < 1 {
		return Plan{}, fmt.Errorf("a sample of %d nodes: it must be 1 or more", sample)
	}
	ranges := min(partitions, size.ranges())
	return Plan{Format: planFormat, Generation: g, Token: rand.Text(), Shards: shards, Splits: size.Splits,
		Partitions: partitions, Ranges: ranges, Spread: size.spreads(ranges), Sample: sample,
		AtATime: size.AtATime}, nil
}
