package stages

import (
	"slices"

	"giantstream/featurize/pifa"
	"giantstream/internal/tasks"
)

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
	Orders    = "orders"
	Behaviour = "behaviour"
	Vectors   = "vectors"
	GoesWith  = "goes-with"
	Relations = "relations"
	Spread    = "spread"
	Features  = "features"
	Mapping   = "mapping"
	Fill      = "fill"
	Compare   = "compare"
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
	evaluated := []string{Number, Index, Link, Vectorise, Encoder, Encode}
	if p.Averaged { // text alone is asked as the texts of this generation have it
		evaluated = append(evaluated, Vectorizer, Projection)
	}
	resolve, link := []string{Number, Index}, []string{Number, Index, Resolve}
	encoder := []string{Number, Index, Link, Vectorizer, Projection, Vectorise, PIFA, Tree}
	weighed := []string{Number, Index, Resolve, Projection, Vectorise}
	if p.Weighted {
		link = append(link, Relations)
	}
	if p.Orders {
		weighed = append(weighed, Orders)
		resolve, link = append(resolve, Orders), append(link, Orders)
	}
	if p.Behaviour {
		encoder = append(encoder, Behaviour)
	}
	if p.Vectors {
		encoder = append(encoder, Vectors)
	}
	all := []Stage{
		{Scatter, len(p.Splits), nil, "rows of a part of a shard's commit log, by partition"},
		{Number, n, []string{Scatter}, "the newest row of every node, in the order of the hashes"},
		{Index, 1, []string{Number}, "how many nodes there are, and the first position of each partition"},
		{Orders, 1, []string{Number, Index}, "links between nodes that are ordered together"},
		{GoesWith, 1, []string{Number, Index}, "what goes with what, of orders"},
		{Resolve, n, resolve, "links to the nodes of a partition, as positions"},
		{Link, n, link, "neighbours of the nodes of a partition"},
		{Count, n, []string{Number, Index}, "document frequencies of the n-grams of a partition"},
		{Merge, n, []string{Index, Count}, "document frequencies of all documents, for a share of the n-grams"},
		{Vectorizer, 1, []string{Index, Merge}, "the vocabulary of TF-IDF"},
		{Projection, 1, []string{Number, Index, Vectorizer}, "the projection (LSA), of a sample of the texts"},
		{Vectorise, n, []string{Number, Index, Vectorizer, Projection},
			"the features of the texts, and projected texts as bfloat16"},
		{Behaviour, 1, []string{Number, Index, Projection, Vectorise}, "what items are ordered with, as a view"},
		{Vectors, 1, nil, "the items' own vectors, as views"},
		{Relations, 1, weighed, "what the kinds of links weigh, by a sample of them"},
		{Spread, n, []string{Index, Link, Projection, Vectorise},
			"projected texts, by range of the labels that need them"},
		{PIFA, p.Ranges, pifaReads, "features of a range of labels"},
		{Features, n, features,
			"the features of a partition's labels that the tree is built of"},
		{Trunk, 1, []string{Index, Projection, clustered}, "the first cuts of the label tree"},
		{Deal, n, []string{clustered, Trunk}, "features of a partition's labels, by branch of the tree"},
		{Branch, n, []string{Trunk, Deal}, "a branch of the label tree"},
		{Tree, 1, []string{Number, Index, Trunk, Branch}, "the label tree, and which label is in which cluster"},
		{Mapping, 1, []string{Number, Index, Link, Tree}, "what became of the clusters of the generation before"},
		{Dataset, n, []string{Number, Index, Link, Vectorizer, Vectorise, Tree}, "the training set"},
		{Encoder, p.TrainingTasks(), encoder, "the encoder"},
		{Encode, n, []string{Number, Index, Vectorizer, Projection, Vectorise, Encoder}, "embeddings"},
		{Evaluate, 1, evaluated, "hidden links and classes"},
		{Fill, n, []string{Number, Index, Link, Encoder, Encode}, "embeddings, from neighbours for nodes without text"},
		{Compare, 1, []string{Number, Index, Link, Encoder, p.EmbeddingStage()},
			"how the embeddings agree with the generation before"},
	}
	all = slices.DeleteFunc(all, func(s Stage) bool { return !p.has(s.Name) })
	if p.Weighted { // what links weigh, the texts say
		at := slices.IndexFunc(all, func(s Stage) bool { return s.Name == Link })
		linked := all[at]
		all = slices.Delete(all, at, at+1)
		at = slices.IndexFunc(all, func(s Stage) bool { return s.Name == Relations })
		all = slices.Insert(all, at+1, linked)
	}
	reads := []string{Index, Link, Vectorizer, Vectorise, Tree, Dataset, Encoder, Evaluate, p.EmbeddingStage()}
	if p.Parent {
		reads = append(reads, Mapping, Compare)
	}
	if p.Weighted {
		reads = append(reads, Relations)
	}
	if p.Orders {
		reads = append(reads, Orders)
	}
	if p.Behaviour {
		reads = append(reads, Behaviour)
	}
	if p.Vectors {
		reads = append(reads, Vectors)
	}
	if p.GoesWith {
		reads = append(reads, GoesWith)
	}
	return append(all, Stage{Finish, 1, reads, "the generation's document; removes what the tasks left"})
}

// has says whether the plan has a stage.
func (p Plan) has(stage string) bool {
	switch stage {
	case Orders:
		return p.Orders
	case Behaviour:
		return p.Behaviour
	case Vectors:
		return p.Vectors
	case GoesWith:
		return p.GoesWith
	case Relations:
		return p.Weighted
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

// EmbeddingStage is the stage that writes the embeddings.
func (p Plan) EmbeddingStage() string {
	if p.Fill {
		return Fill
	}
	return Encode
}

// TasksOf returns the tasks of a stage.
func (p Plan) TasksOf(s Stage) []tasks.Task {
	all := make([]tasks.Task, s.Tasks)
	for i := range all {
		all[i] = tasks.Task{Generation: p.Generation, Stage: s.Name, Partition: i}
	}
	return all
}

// Find returns the stage of a name.
func (p Plan) Find(name string) (Stage, bool) {
	for _, s := range p.Stages() {
		if s.Name == name {
			return s, true
		}
	}
	return Stage{}, false
}

// LastReads returns for each stage but the last what no later one reads. What the stages that a build ends with leave
// is removed with the rest.
func (p Plan) LastReads() map[string][]string {
	reader := map[string]string{}
	for _, s := range p.Stages() {
		for _, read := range s.Reads {
			reader[read] = s.Name
		}
	}
	last := map[string][]string{}
	for read, s := range reader {
		if s != Finish {
			last[s] = append(last[s], read)
		}
	}
	return last
}
