package plan

import (
	"math"
	"slices"

	"giantstream/featurize/pifa"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/build/stages"
	"giantstream/train/objectives/xrt"
)

// Graph is what the cost of a build depends on.
type Graph struct {
	Nodes     int64 `json:"nodes"`
	TextBytes int64 `json:"text_bytes"`
	// References are the links in the rows, and Links those of them that lead to a node: an edge counts twice.
	References int64 `json:"references"`
	Links      int64 `json:"links"`
	// Classes of the nodes, 0 for none.
	Classes int `json:"classes"`
}

// Growth is how the n-grams of texts grow, and the sample with each instance.
type Growth struct {
	// Exponent: texts of b bytes have about b^Exponent different n-grams (Heaps).
	Exponent float64 `json:"exponent"`
	// Candidates are the n-grams of at least two documents, for each byte of text.
	Candidates float64 `json:"candidates_per_byte"`
	// Reach is how many other nodes an instance brings into the sample for each of its links: 1 where they lead to any
	// node, and few where most lead to the same ones.
	Reach float64 `json:"reach"`
}

// term is a quantity that the cost of a stage grows with.
type term string

const (
	perBuild     term = "build"
	perMachine   term = "machine"
	perPartition term = "partition"
	perPiece     term = "piece" // what one task of a shuffle leaves for another
	perNode      term = "node"
	perPass      term = "node and pass" // of trunk, see passes
	perDirected  term = "node that trunk directs a cut by"
	perDecoded   term = "projected text that pifa decodes"
	perCopy      term = "projected text that a range of labels reads"
	perMissed    term = "reference to sums of labels outside of the cache"
	perOpened    term = "partition that a range of labels reads"
	perReference term = "reference"
	perLink      term = "link"
	perText      term = "byte of text"
	perRow       term = "byte of rows"
	perScan      term = "byte of rows, looked through for the sample"
	perNGram     term = "different n-gram of a partition"
	perMerge     term = "n-gram and merge"
	perCandidate term = "candidate"
	perFitted    term = "byte of text that the projection is fitted to"
	perPosition  term = "byte of text in the sample"
	perInstance  term = "instance in the sample"
	perTrained   term = "instance and pass of the training" // see xrt.Passes
	perLearned   term = "class of an instance that classifiers learn"
	perChosen    term = "class of an instance that classifiers are chosen by"
	perCompared  term = "compared node"
)

const (
	rowBytes       = 100     // of a row of the commit log, about, beside its text and links
	referenceBytes = 20      // of a link in it
	fitted         = 8192    // texts that the projection is fitted to
	learning       = 1 << 15 // instances that a classifier of evaluate learns from at most
	choosing       = 4000    // and those by which its strength is chosen, four fifths of what it learns from
	manyToLearn    = 1 << 12 // with more of them, each classifier is trained once, else five times
	compared       = 20_000  // nodes that compare looks at
	shareOfNGrams  = 250_000 // candidates that a task of merge keeps at most
	candidateBytes = 14      // of a candidate in what merge leaves
	cutWhole       = 10_000  // labels of a part that trunk does not cut any more
	gatherPasses   = 3       // passes' worth of work before the first cut: verify, copy, find labels with features
	cacheBytes     = 8 << 20 // about what a cache keeps of the sums of labels, to which pifa adds at random
	mergeDepth     = 10      // an n-gram of merge costs as much as this many levels of the heap that it goes through
)

// quantities returns how often a build on the given number of machines incurs each term of the cost.
func quantities(g Graph, c Calibration, d stages.Plan, machines int) map[term]float64 {
	growth, passes := c.Growth, 1.0 // linear solves
	n, text, p := float64(g.Nodes), float64(g.TextBytes), float64(d.Partitions)
	mean := text / max(1, n)
	positions, instances := sampled(g, growth.Reach, d.Sample)
	if c.Encoder != linear.Kind {
		passes = float64(xrt.Passes(int(instances)))
	}
	ngrams := p * math.Pow(text/p, growth.Exponent)
	rounds := min(math.Log2(p), math.Ceil(math.Log2(max(1, n/cutWhole)))) // of cuts, each in half
	degree, ranges := float64(g.Links)/max(1, n), float64(d.Ranges)
	// Without spread, every range reads all nodes, and decodes those of a partition that it has links from.
	decoded, copies := stages.Reached(d.Partitions, degree), ranges
	if d.Spread {
		copies = stages.Reached(d.Ranges, degree)
		decoded = copies
	}
	return map[term]float64{
		perBuild: 1, perMachine: float64(machines), perPartition: p, perPiece: p * p,
		perNode: n, perPass: n * (gatherPasses + rounds), perDirected: (math.Exp2(rounds) - 1) * min(n, cutWhole),
		perMissed: float64(g.Links) * max(0, 1-cacheBytes/(4*float64(c.Dim)*n/ranges)), perDecoded: n * decoded,
		perCopy: n * copies, perOpened: p * ranges,
		perReference: float64(g.References), perLink: float64(g.Links),
		perText: text, perRow: text + rowBytes*n + referenceBytes*float64(g.References),
		perScan:  text + rowBytes*n + referenceBytes*float64(g.References),
		perNGram: ngrams, perMerge: ngrams * (1 + math.Log2(p)/mergeDepth),
		perCandidate: min(growth.Candidates*text, p*shareOfNGrams),
		perFitted:    min(n, fitted) * mean, perPosition: positions * mean,
		perInstance: instances, perTrained: passes * instances,
		perLearned:  float64(g.Classes) * classified(instances, 1, learning),
		perChosen:   float64(g.Classes) * classified(instances, 0.8, choosing),
		perCompared: min(n, compared),
	}
}

// classified returns how many instances all classifiers of evaluate learn from, or a share of these up to a limit.
func classified(instances, share, limit float64) (sum float64) {
	for _, rate := range []float64{0.1, 0.6} { // evaluate.probe_rates, as they are by default
		n, repeats := rate*instances, 5.0
		if n > manyToLearn {
			repeats = 1
		}
		sum += repeats * min(share*n, limit)
	}
	return sum
}

// sampled returns the nodes of the encoder's sample, and those of them that are instances: with each comes what it
// links to, so that few instances fill a sample that is small beside the graph.
func sampled(g Graph, reach float64, most int) (positions, instances float64) {
	n, s := float64(g.Nodes), float64(min(g.Nodes, int64(most)))
	if s >= n {
		return n, n
	}
	// A node is in the sample if it or one of those that it links to is an instance, whichever those are.
	brings := reach * float64(g.Links) / n
	return s, n * (1 - math.Pow(1-s/n, 1/(1+brings)))
}

// reach is the reach with which sampled returns the instances that filled a sample.
func reach(g Graph, sample, instances int) float64 {
	n := float64(g.Nodes)
	if g.Links == 0 || instances >= sample || float64(sample) >= n {
		return 0
	}
	brings := math.Log1p(-float64(sample)/n)/math.Log1p(-float64(instances)/n) - 1
	return brings * n / float64(g.Links)
}

// Shape says which terms the cost of a stage has: processor time, bytes read and bytes written.
type Shape struct{ CPU, Read, Written []term }

func terms(terms ...term) []term { return terms }

// Shapes are those of all stages that there are. Of terms that explain a cost alike, the first one is taken.
var Shapes = map[string]Shape{
	stages.Scatter: {terms(perRow), terms(perRow), terms(perRow, perPiece)},
	stages.Number:  {terms(perRow, perPiece), terms(perRow, perPiece), terms(perRow, perPiece)},
	stages.Index:   {terms(perPartition), terms(perPartition), terms(perPartition)},
	stages.Resolve: {terms(perReference, perPiece), terms(perReference, perPiece),
		terms(perReference, perLink, perPiece)},
	stages.Link: {terms(perReference, perPiece), terms(perReference, perLink, perPiece),
		terms(perNode, perReference)},
	stages.Count:      {terms(perText), terms(perText), terms(perNGram, perPiece)},
	stages.Merge:      {terms(perMerge, perPiece), terms(perNGram, perPiece), terms(perCandidate)},
	stages.Vectorizer: {terms(perCandidate), terms(perCandidate, perPartition), terms(perBuild)},
	stages.Projection: {terms(perFitted), terms(perFitted, perBuild), terms(perBuild)},
	stages.Vectorise:  {terms(perText, perMachine), terms(perText), terms(perNode)},
	stages.Spread:     {terms(perCopy, perNode), terms(perNode, perLink), terms(perCopy, perLink)},
	stages.PIFA: {terms(perLink, perMissed, perDecoded, perOpened), terms(perLink, perCopy, perOpened),
		terms(perNode)},
	stages.Features: {terms(perNode, perLink), terms(perNode, perLink), terms(perNode)},
	stages.Trunk:    {terms(perPass, perDirected), terms(perNode, perPartition), terms(perNode, perPartition)},
	stages.Deal:     {terms(perNode, perPiece), terms(perNode, perPartition), terms(perNode, perPiece)},
	stages.Branch:   {terms(perNode, perPiece), terms(perNode, perPiece), terms(perNode, perPartition)},
	stages.Tree:     {terms(perNode), terms(perNode, perPartition), terms(perNode)},
	stages.Mapping:  {terms(perNode, perLink), terms(perNode, perLink), terms(perBuild)},
	stages.Dataset:  {terms(perRow, perMachine), terms(perRow), terms(perRow)},
	stages.Encoder:  {terms(perPosition, perTrained, perBuild, perScan), terms(perRow, perPosition), terms(perBuild)},
	stages.Evaluate: {terms(perPosition, perInstance, perLearned, perChosen, perScan), terms(perRow, perPosition),
		terms(perBuild)},
	stages.Encode:  {terms(perText, perMachine), terms(perRow), terms(perNode)},
	stages.Fill:    {terms(perNode, perLink), terms(perNode, perLink), terms(perNode)},
	stages.Compare: {terms(perCompared), terms(perCompared), terms(perBuild)},
	stages.Finish:  {terms(perPartition, perBuild), terms(perPartition, perBuild), terms(perPartition, perBuild)},
}

// scanShare is what it takes to look through a row for the sample, as a share of what it takes to number it. A small
// graph does not tell: there it is a thousandth of the training.
const scanShare = 1.0 / 12

// optional are the stages that only some plans have.
var optional = []string{stages.Spread, stages.Features, stages.Mapping, stages.Fill, stages.Compare}

func isOptional(stage string) bool { return slices.Contains(optional, stage) }

// labelFeatures is what the stage features is measured with: the kind that costs most.
const labelFeatures = string(pifa.PIFAIdentity)
