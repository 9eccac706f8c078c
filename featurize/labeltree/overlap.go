package labeltree

import (
	"cmp"
	"math"
	"slices"
)

// Clustering is where labels have clusters: a Tree, or a live.Tree.
type Clustering interface {
	Levels() int
	Clusters(level int) int
	// Cluster returns the cluster of a level that holds the label, or -1.
	Cluster(level, label int) int32
}

// Shared is a label that two trees know, by its number in each.
type Shared struct{ Old, New int32 }

// Flow says how many labels of an old cluster are in a new one.
type Flow struct {
	Old, New int32
	Labels   int
}

// Overlap compares a level of one tree with a level of another, over the
// labels that both have in a cluster.
type Overlap struct {
	OldLevel, NewLevel int
	// Labels is the number of labels compared.
	Labels int
	// Flows by old cluster, ascending; for each the largest first. The share
	// of a flow is its labels over those of all flows of that old cluster.
	Flows []Flow
}

// Mapping maps the clusters of one tree to those of another: one Overlap for each level of the old
// one, with the level of the new one whose number of clusters is nearest by ratio.
func Mapping(from, to Clustering, shared []Shared) []Overlap {
	out := make([]Overlap, from.Levels())
	for level := range out {
		out[level] = overlap(from, level, to, nearestLevel(to, from.Clusters(level)), shared)
	}
	return out
}

// nearestLevel returns the level with about that many clusters.
func nearestLevel(c Clustering, clusters int) (nearest int) {
	distance := func(level int) float64 {
		return math.Abs(math.Log(float64(c.Clusters(level)) / float64(clusters)))
	}
	for level := range c.Levels() {
		if distance(level) < distance(nearest) {
			nearest = level
		}
	}
	return nearest
}

func overlap(from Clustering, oldLevel int, to Clustering, newLevel int, shared []Shared) Overlap {
	o := Overlap{OldLevel: oldLevel, NewLevel: newLevel}
	labels := map[[2]int32]int{}
	for _, s := range shared {
		a, b := from.Cluster(oldLevel, int(s.Old)), to.Cluster(newLevel, int(s.New))
		if a >= 0 && b >= 0 {
			labels[[2]int32{a, b}]++
			o.Labels++
		}
	}
	for k, n := range labels {
		o.Flows = append(o.Flows, Flow{k[0], k[1], n})
	}
	slices.SortFunc(o.Flows, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(a.Old, b.Old), cmp.Compare(b.Labels, a.Labels), cmp.Compare(a.New, b.New))
	})
	return o
}

// Matched returns the share of the labels that went where most of their old
// cluster went: 1 when no old cluster was divided.
func (o *Overlap) Matched() float64 {
	matched := 0
	for i, f := range o.Flows {
		if i == 0 || o.Flows[i-1].Old != f.Old {
			matched += f.Labels
		}
	}
	return float64(matched) / float64(max(1, o.Labels))
}

// AMI returns the adjusted mutual information of both clusterings, normalized
// by the mean of their entropies: 1 for the same clusters under any numbers, about 0 for
// clusters that have nothing to do with each other, whatever their sizes (Vinh, Epps and
// Bailey, "Information theoretic measures for clusterings comparison", JMLR 2010).
func (o *Overlap) AMI() float64 {
	if o.Labels == 0 {
		return 0
	}
	n := float64(o.Labels)
	from, to := map[int32]int{}, map[int32]int{}
	for _, f := range o.Flows {
		from[f.Old] += f.Labels
		to[f.New] += f.Labels
	}
	var mutual float64
	for _, f := range o.Flows {
		nij := float64(f.Labels)
		mutual += nij / n * math.Log(n*nij/(float64(from[f.Old])*float64(to[f.New])))
	}
	a, b := sizes(from), sizes(to)
	expected := expectedMutual(a, b, o.Labels)
	entropy := (a.entropy(n) + b.entropy(n)) / 2
	if entropy-expected < 1e-12 { // both are one cluster, or all singletons
		return 1
	}
	return (mutual - expected) / (entropy - expected)
}

// sizeCount is how many clusters are of one size. Balanced trees have few sizes.
type sizeCount struct{ size, clusters int }

type sizeCounts []sizeCount

func sizes(clusters map[int32]int) (out sizeCounts) {
	count := map[int]int{}
	for _, n := range clusters {
		count[n]++
	}
	for size, k := range count {
		out = append(out, sizeCount{size, k})
	}
	slices.SortFunc(out, func(a, b sizeCount) int { return cmp.Compare(a.size, b.size) })
	return out
}

func (s sizeCounts) entropy(n float64) (h float64) {
	for _, c := range s {
		p := float64(c.size) / n
		h -= float64(c.clusters) * p * math.Log(p)
	}
	return h
}

// expectedMutual is the mutual information of random clusterings with the same
// sizes (Vinh et al., equation 24a). The hypergeometric weights are summed
// over 12 standard deviations around their mean; there is nothing beyond.
func expectedMutual(as, bs sizeCounts, n int) (e float64) {
	logFactorial := func(k int) float64 { v, _ := math.Lgamma(float64(k + 1)); return v }
	total := float64(n)
	for _, a := range as {
		for _, b := range bs {
			fixed := logFactorial(a.size) + logFactorial(b.size) + logFactorial(n-a.size) +
				logFactorial(n-b.size) - logFactorial(n)
			mean := float64(a.size) * float64(b.size) / total
			reach := 12*math.Sqrt(mean) + 12 // the variance is below the mean
			lo := max(1, a.size+b.size-n, int(mean-reach))
			hi := min(a.size, b.size, int(mean+reach))
			var sum float64
			for k := lo; k <= hi; k++ {
				p := fixed - logFactorial(k) - logFactorial(a.size-k) - logFactorial(b.size-k) -
					logFactorial(n-a.size-b.size+k)
				sum += float64(k) / total * math.Log(total*float64(k)/(float64(a.size)*float64(b.size))) * math.Exp(p)
			}
			e += float64(a.clusters) * float64(b.clusters) * sum
		}
	}
	return e
}
