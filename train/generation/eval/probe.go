package eval

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// ErrNoClasses: too few nodes have a class, or all have the same.
var ErrNoClasses = errors.New("not enough nodes with different classes for a probe")

// ProbeOptions says how the class probe is trained.
type ProbeOptions struct {
	// Fraction of the nodes with a class that train the probe.
	Fraction float64
	// Repeats is the number of random choices of training nodes; 0 means 5, and 1 where there are
	// more than 2,048 of them.
	Repeats int
	Seed    uint64
	Workers int
}

// ProbeMetrics is how well a linear probe tells the class.
type ProbeMetrics struct {
	// Accuracy is the mean over the repeats, StdDev their standard deviation: 0 with one repeat.
	Accuracy float64 `json:"accuracy"`
	StdDev   float64 `json:"stddev"`
	// StdErr is the standard error of the accuracy: of the choices of training nodes, and of the
	// nodes as a sample. 0 in figures of builds that did not measure it.
	StdErr float64 `json:"stderr,omitempty"`
	// Majority is the accuracy of always naming the commonest class.
	Majority float64 `json:"majority"`
	Classes  int     `json:"classes"`
	Train    int     `json:"train"`
	Test     int     `json:"test"`
}

// ClassMetrics is how well a probe tells the class of some nodes. The standard error is that of the
// nodes as a sample and, where the probe was trained more than once, of the choices of training
// nodes.
type ClassMetrics struct {
	Accuracy float64 `json:"accuracy"`
	StdErr   float64 `json:"stderr"`
	// Nodes is how many different nodes were asked about.
	Nodes int `json:"nodes"`
}

const (
	// A fifth of the training nodes, and no more than 1,000, choose the strength of the
	// regularization; probes are fitted on at most four times as many for that.
	choiceShare = 5
	maxChoice   = 1000
	// maxProbeRows bounds the nodes that a probe learns from, and with them the time that it takes.
	maxProbeRows = 1 << 15
	// With more than manyRows training nodes, the choices of nodes differ by less than the nodes as a
	// sample do, and one of them is enough.
	manyRows    = 1 << 11
	someRepeats = 5 // with fewer
)

// strengths are the values of C that a probe chooses from: inverse regularization in the sense of
// scikit-learn, strong to weak.
var strengths = []float64{0.1, 0.3, 1, 3, 10, 30, 100}

// Prober trains class probes on the embeddings of a graph's nodes.
type Prober struct {
	unit  []float32 // n×dim, rows of length 1
	dim   int
	names []string
	label []int32 // by node, -1 without class
	nodes []int32 // with class
	count []int   // of nodes by class
}

// NewProber returns a Prober for embeddings (n×dim); nodes with class "" take no part.
func NewProber(emb []float32, dim int, classes []string) (*Prober, error) {
	if dim < 1 || len(emb) != len(classes)*dim {
		return nil, fmt.Errorf("probe: %d numbers are not %d embeddings of dimension %d", len(emb),
			len(classes), dim)
	}
	p := &Prober{unit: normalized(emb, dim), dim: dim, label: make([]int32, len(classes))}
	p.names = slices.Sorted(slices.Values(classes))
	p.names = slices.DeleteFunc(slices.Compact(p.names), func(s string) bool { return s == "" })
	p.count = make([]int, len(p.names))
	for i, c := range classes {
		p.label[i] = -1
		if c == "" {
			continue
		}
		at, _ := slices.BinarySearch(p.names, c)
		p.label[i] = int32(at)
		p.count[at]++
		p.nodes = append(p.nodes, int32(i))
	}
	return p, nil
}

// Probe reports how well a logistic regression on emb (n×dim) tells the classes; nodes with class ""
// take no part.
func Probe(emb []float32, dim int, classes []string, o ProbeOptions) (ProbeMetrics, error) {
	p, err := NewProber(emb, dim, classes)
	if err != nil {
		return ProbeMetrics{}, err
	}
	m, _, err := p.Probe(nil, 0, o)
	return m, err
}

// Probe trains on random choices of nodes and reports the accuracy on the others: on all of them,
// and on each of a number of groups, which group tells for a node.
func (p *Prober) Probe(group []uint8, groups int, o ProbeOptions) (ProbeMetrics, []ClassMetrics, error) {
	m := ProbeMetrics{Classes: len(p.names), Train: int(o.Fraction * float64(len(p.nodes)))}
	if o.Repeats == 0 {
		o.Repeats = 1
		if m.Train <= manyRows {
			o.Repeats = someRepeats
		}
	}
	m.Test = len(p.nodes) - m.Train
	if len(p.names) < 2 || m.Train < len(p.names) || m.Test < 1 {
		return m, nil, fmt.Errorf("probe: %w: %d nodes, %d classes", ErrNoClasses, len(p.nodes), len(p.names))
	}
	m.Majority = float64(slices.Max(p.count)) / float64(len(p.nodes))

	all := make(tally, o.Repeats)
	parts := make([]tally, groups)
	for k := range parts {
		parts[k] = make(tally, o.Repeats)
	}
	tests := make([][]int32, o.Repeats)
	// Repeats share the workers: goroutines within goroutines would only wait for a processor.
	each := max(1, parallel.Workers(o.Workers)/o.Repeats)
	parallel.ForEach(o.Repeats, 1, o.Workers, func(_, _, k, _ int) {
		r := numeric.NewRand(o.Seed, uint64(k))
		order := slices.Clone(p.nodes)
		r.Shuffle(order)
		test := order[m.Train:]
		tests[k] = test
		for at, class := range p.classify(order[:m.Train], test, each) {
			i := test[at]
			right := class == p.label[i]
			all[k].add(right)
			if group != nil {
				parts[group[i]][k].add(right)
			}
		}
	})
	asked := slices.Concat(tests...)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	whole := all.metrics(len(asked))
	m.Accuracy, m.StdErr = whole.Accuracy, whole.StdErr
	m.StdDev = all.stdDev(m.Accuracy)
	size := make([]int, groups)
	if group != nil {
		for _, i := range asked {
			size[group[i]]++
		}
	}
	out := make([]ClassMetrics, groups)
	for k := range out {
		out[k] = parts[k].metrics(size[k])
	}
	return m, out, nil
}

// ProbeUnseen trains one probe on the given nodes and asks it about others, MinCases at least; those without a
// class take no part in either.
func (p *Prober) ProbeUnseen(train, test []int32, seed uint64, workers int) (ClassMetrics, error) {
	labelled := func(nodes []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(nodes), func(i int32) bool { return p.label[i] < 0 })
	}
	train, test = labelled(train), labelled(test)
	if len(p.names) < 2 || len(train) < len(p.names) || len(test) < MinCases {
		return ClassMetrics{Nodes: len(test)}, fmt.Errorf(
			"probe: %w: %d nodes to learn from, %d to ask about, %d classes",
			ErrNoClasses, len(train), len(test), len(p.names))
	}
	r := numeric.NewRand(seed)
	r.Shuffle(train)
	all := make(tally, 1)
	for at, class := range p.classify(train, test, workers) {
		all[0].add(class == p.label[test[at]])
	}
	return all.metrics(len(test)), nil
}

// classify fits a probe to the training nodes, which come in random order, and returns the classes
// that it tells for the test nodes. Of the training nodes, the last fifth chooses the strength of
// the regularization.
func (p *Prober) classify(train, test []int32, workers int) []int32 {
	train = train[:min(len(train), maxProbeRows)]
	choice := min(len(train)/choiceShare, maxChoice)
	fitted := min(len(train)-choice, (choiceShare-1)*maxChoice)
	c, start := p.strength(train[:fitted], train[len(train)-choice:], workers)
	l := newLogistic(p.unit, p.dim, p.label, len(p.names), train, workers)
	l.centred(start)
	l.fit(start, c)
	return l.predict(start, test)
}

// strength returns the strength that tells the most classes of the choice nodes, among equals the one
// with the lowest log loss, and the parameters that it led to.
func (p *Prober) strength(train, choice []int32, workers int) (best float64, parameters []float64) {
	l := newLogistic(p.unit, p.dim, p.label, len(p.names), train, workers)
	at := l.parameters()
	if len(choice) == 0 {
		return 1, l.uncentred(at)
	}
	most, lowest := -1, 0.0
	for _, c := range strengths {
		l.fit(at, c)
		right, loss := l.score(at, choice)
		if right > most || right == most && loss < lowest {
			most, lowest, best, parameters = right, loss, c, l.uncentred(at)
		}
	}
	return best, parameters
}

// tally counts answers, per repeat.
type tally []answers

type answers struct{ right, all int }

func (a *answers) add(right bool) {
	a.all++
	if right {
		a.right++
	}
}

func (a answers) accuracy() float64 {
	if a.all == 0 {
		return 0
	}
	return float64(a.right) / float64(a.all)
}

// stdDev returns the standard deviation of the repeats' accuracies.
func (t tally) stdDev(mean float64) float64 {
	if len(t) < 2 {
		return 0
	}
	var squares float64
	for _, a := range t {
		squares += (a.accuracy() - mean) * (a.accuracy() - mean)
	}
	return math.Sqrt(squares / float64(len(t)-1))
}

// metrics sums up the repeats, in which a given number of different nodes took part.
func (t tally) metrics(nodes int) ClassMetrics {
	m := ClassMetrics{Nodes: nodes}
	asked := 0
	for _, a := range t {
		if a.all > 0 {
			m.Accuracy += a.accuracy()
			asked++
		}
	}
	if asked == 0 || nodes == 0 {
		return ClassMetrics{}
	}
	m.Accuracy /= float64(asked)
	d := t.stdDev(m.Accuracy)
	m.StdErr = math.Sqrt(d*d/float64(asked) + m.Accuracy*(1-m.Accuracy)/float64(nodes))
	return m
}
