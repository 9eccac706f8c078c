package build

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"giantstream/featurize/pifa"
	"giantstream/internal/seal"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation"
)

// ErrNoPlan: the generation was not begun, or is gone.
var ErrNoPlan = errors.New("no build of this generation has begun; 'giantstream build plan' begins one")

// ErrNoTask: the plan has no such stage, or the stage no such partition.
var ErrNoTask = errors.New("there is no such task; 'giantstream build plan' lists those there are")

const planFormat = 3

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

// Plan is generations/<g>/tasks/plan.json: how a generation is divided. It is written once, when the build begins,
// and no task changes it. Partitions and Ranges are powers of two.
type Plan struct {
	Format     int   `json:"format"`
	Generation int64 `json:"generation"`
	// Token is the build's own: one that is begun again under the same number has another.
	Token  string `json:"token"`
	Shards int    `json:"shards"`
	// Splits are the parts of the commit log that scatter reads, those of a shard after each other.
	Splits []Split `json:"splits"`
	// Partitions of the nodes, by the upper bits of the hash of their ids.
	Partitions int `json:"partitions"`
	// Ranges of labels that PIFA is computed for at a time.
	Ranges int `json:"ranges"`
	// Spread: projected texts are written to the ranges that need them, instead of read by all.
	Spread bool `json:"spread,omitempty"`
	// Sample is how many nodes the encoder is trained and evaluated on at most.
	Sample int `json:"sample"`
	// AtATime is how many tasks a process may do at a time within its memory, 0 for any number.
	AtATime int `json:"at_a_time,omitempty"`
	// Trainers is how many processes train the encoder together, 0 for one.
	Trainers int `json:"trainers,omitempty"`
	// Warm: the generation may start from what its parent has learned; start decides.
	Warm bool `json:"warm,omitempty"`
	// Features are what the tree is built of where that is not PIFA. Fill: nodes without text have the embeddings of
	// their neighbours. Parent: there is a generation to compare with.
	Features pifa.Kind `json:"features,omitempty"`
	Fill     bool      `json:"fill,omitempty"`
	Parent   bool      `json:"parent,omitempty"`
}

// Split is the part of a shard's commit log after manifest After, up to manifest To. It is a function of the cut.
type Split struct {
	Shard int   `json:"shard"`
	After int64 `json:"after"`
	To    int64 `json:"to"`
}

func (p Plan) trainers() int { return max(1, p.Trainers) }

// Size is what a plan is made for.
type Size struct {
	// Rows and Bytes of the commit log at the cut, superseded rows included.
	Rows, Bytes int64
	// Splits divide the commit log.
	Splits []Split
	// Nodes and Links of the graph, about; 0 if unknown. An edge between two nodes is a link of both.
	Nodes, Links int64
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

// SplitRows is about how many rows of a commit log of so many a split should have.
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

// powerOfTwo is the least power of two that is n or more, at most maxPartitions.
func powerOfTwo(n int64) int {
	if n >= maxPartitions {
		return maxPartitions
	}
	return 1 << bits.Len64(uint64(max(n, 1)-1))
}

// Stage is a stage of a build: tasks that need nothing of each other.
type Stage struct {
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
	// Reads are the stages whose outputs it reads.
	Reads []string `json:"reads,omitempty"`
	// Does says what it is for.
	Does string `json:"does"`
}

// Names of the stages.
const (
	Scatter    = "scatter"
	Number     = "number"
	Index      = "index"
	Resolve    = "resolve"
	Link       = "link"
	Count      = "count"
	Merge      = "merge"
	Vectorizer = "vectorizer"
	Projection = "projection"
	Vectorise  = "vectorise"
	PIFA       = "pifa"
	Trunk      = "trunk"
	Deal       = "deal"
	Branch     = "branch"
	Tree       = "tree"
	Dataset    = "dataset"
	Encoder    = "encoder"
	Evaluate   = "evaluate"
	Encode     = "encode"
	Finish     = "finish"

	// Those that only some plans have.
	Start    = "start"
	Spread   = "spread"
	Features = "features"
	Mapping  = "mapping"
	Fill     = "fill"
	Compare  = "compare"
)

// Stages returns the stages of a plan in an order in which they can be done one after the other.
func (p Plan) Stages() []Stage {
	n := p.Partitions
	clustered := PIFA
	if p.Features != "" {
		clustered = Features
	}
	features := []string{Index, Resolve, Link, Projection}
	if p.Features == pifa.Text {
		features = append(features, Vectorise)
	}
	pifaReads := []string{Index, Resolve, Link, Projection, Vectorise}
	if p.Spread {
		pifaReads = []string{Index, Link, Projection, Spread}
	}
	all := []Stage{
		{Scatter, len(p.Splits), nil, "rows of a part of a shard's commit log, by partition"},
		{Number, n, []string{Scatter}, "the newest row of every node, in the order of the hashes"},
		{Index, 1, []string{Number}, "how many nodes there are, and the first position of each partition"},
		{Start, 1, []string{Number, Index}, "what the generation before has learned, and which nodes have changed"},
		{Resolve, n, []string{Number, Index}, "links to the nodes of a partition, as positions"},
		{Link, n, []string{Number, Index, Resolve}, "neighbours of the nodes of a partition"},
		{Count, n, []string{Number, Index}, "document frequencies of the n-grams of a partition"},
		{Merge, n, []string{Index, Count}, "document frequencies of all documents, for a share of the n-grams"},
		{Vectorizer, 1, []string{Index, Merge}, "the vocabulary of TF-IDF"},
		{Projection, 1, []string{Number, Index, Vectorizer}, "the projection (LSA), of a sample of the texts"},
		{Vectorise, n, []string{Number, Index, Vectorizer, Projection},
			"the features of the texts, and projected texts as bfloat16"},
		{Spread, n, []string{Index, Link, Projection, Vectorise},
			"projected texts, by range of the labels that need them"},
		{PIFA, p.Ranges, pifaReads, "features of a range of labels"},
		{Features, n, features,
			"the features of a partition's labels that the tree is built of"},
		{Trunk, 1, []string{Index, Projection, clustered}, "the first cuts of the label tree"},
		{Deal, n, []string{clustered, Trunk}, "features of a partition's labels, by branch of the tree"},
		{Branch, n, []string{Trunk, Deal}, "a branch of the label tree"},
		{Tree, 1, p.treeReads(clustered), "the label tree, and which label is in which cluster"},
		{Mapping, 1, []string{Number, Index, Link, Tree}, "what became of the clusters of the generation before"},
		{Dataset, n, []string{Number, Index, Link, Vectorizer, Vectorise, Tree}, "the training set"},
		{Encoder, p.trainers(), []string{Number, Index, Link, Vectorizer, Projection, Vectorise, PIFA, Tree},
			"the encoder"},
		{Encode, n, []string{Number, Index, Vectorizer, Projection, Vectorise, Encoder}, "embeddings"},
		{Evaluate, 1, []string{Number, Index, Link, Vectorise, Encoder, Encode}, "hidden links and classes"},
		{Fill, n, []string{Number, Index, Link, Encoder, Encode}, "embeddings, from neighbours for nodes without text"},
		{Compare, 1, []string{Number, Index, Link, Encoder, p.embeddings()},
			"how the embeddings agree with the generation before"},
	}
	all = slices.DeleteFunc(all, func(s Stage) bool { return !p.has(s.Name) })
	if p.Warm {
		for i, s := range all {
			if slices.Contains(learned, s.Name) {
				all[i].Reads = slices.Concat(s.Reads, []string{Start})
			}
		}
	}
	reads := []string{Index, Link, Vectorizer, Vectorise, Tree, Dataset, Encoder, Evaluate, p.embeddings()}
	if p.Warm {
		reads = append(reads, Start)
	}
	if p.Parent {
		reads = append(reads, Mapping, Compare)
	}
	return append(all, Stage{Finish, 1, reads, "the generation's document; removes what the tasks left"})
}

// learned are the stages that have nothing or less to do where the generation starts from its parent.
var learned = []string{Count, Merge, Vectorizer, Projection, Trunk, Deal, Branch, Tree, Encoder}

// has says whether the plan has a stage.
func (p Plan) has(stage string) bool {
	switch stage {
	case Start:
		return p.Warm
	case Spread:
		return p.Spread
	case Features:
		return p.Features != ""
	case Fill:
		return p.Fill
	case Mapping, Compare:
		return p.Parent
	}
	return true
}

// treeReads are the stages that the tree is joined from; a renewed one is made of the labels' features.
func (p Plan) treeReads(clustered string) []string {
	reads := []string{Number, Index, Trunk, Branch}
	if p.Warm {
		reads = append(reads, Projection, clustered)
	}
	return reads
}

// embeddings is the stage that writes the embeddings.
func (p Plan) embeddings() string {
	if p.Fill {
		return Fill
	}
	return Encode
}

// Of returns the tasks of a stage.
func (p Plan) Of(s Stage) []tasks.Task {
	all := make([]tasks.Task, s.Tasks)
	for i := range all {
		all[i] = tasks.Task{Generation: p.Generation, Stage: s.Name, Partition: i}
	}
	return all
}

// stage returns the stage of a name.
func (p Plan) stage(name string) (Stage, bool) {
	for _, s := range p.Stages() {
		if s.Name == name {
			return s, true
		}
	}
	return Stage{}, false
}

// TasksPrefix is the folder of what the tasks of generation g exchange.
func TasksPrefix(g int64) string { return generation.Prefix(g) + generation.TasksFolder }

func planKey(g int64) string { return generation.Prefix(g) + generation.TasksPlan }

// LoadPlan reads the plan of generation g: ErrNoPlan if there is none.
func LoadPlan(ctx context.Context, store sink.Store, g int64) (p Plan, err error) {
	data, err := sink.ReadAll(ctx, store, planKey(g))
	if errors.Is(err, sink.ErrNotFound) {
		return p, fmt.Errorf("generation %d: %w", g, ErrNoPlan)
	}
	if err != nil {
		return p, err
	}
	body, sealed, err := seal.Open(data)
	if err == nil && !sealed {
		err = errors.New("it has no checksum")
	}
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w: %w", planKey(g), sink.ErrDamaged, err)
	}
	if p.Format != planFormat || p.Generation != g {
		return p, fmt.Errorf("%s has format %d and generation %d; this program knows format %d: use the release that "+
			"began the build", planKey(g), p.Format, p.Generation, planFormat)
	}
	return p, nil
}

// create writes the plan if there is none, and returns the one that counts.
func (p Plan) create(ctx context.Context, store sink.Store) (Plan, error) {
	data, err := seal.JSON(p)
	if err != nil {
		return p, err
	}
	err = store.Create(ctx, planKey(p.Generation), data)
	if errors.Is(err, sink.ErrExists) {
		return LoadPlan(ctx, store, p.Generation)
	}
	return p, err
}
