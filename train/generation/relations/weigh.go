package relations

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"giantstream/train/encoders/linear"
	"giantstream/train/numeric"
)

const (
	// heldOut is the share of a kind's links that are held out, at most mostAsked of which are predicted. A kind with
	// fewer than leastAsked has the weight of the best.
	heldOut    = 0.2
	mostAsked  = 20000
	leastAsked = 50
	// drawn is how many random ends each is compared with.
	drawn = 8
	// significant is how many standard errors a surplus lies above chance at least. A link between two nodes of the
	// sample is asked in both directions, so that the error is larger than it looks, by √2 at most.
	significant = 3
	// ridge is the regularisation of the predictor, relative to the mean diagonal.
	ridge = 0.1
	// rounds of weighing: the first gives all links the same weight.
	rounds = 2
	// block is how many links are added to the sums at a time.
	block = 2048
)

// stream keeps the draws apart from others of the same seed.
const stream = 'K'

// exponents of stated weights. Of two that are as good, the first counts.
var exponents = [...]float64{0, 0.5, 1}

// Link is a link of a sample, from one node of it to another one.
type Link struct {
	From, To int32
	Relation int32
	Weight   float32
	Time     int64
}

// Sample is what relations are weighed by.
type Sample struct {
	// Relations name what links are of.
	Relations []Relation
	// Links are in an order that does not depend on how the graph is divided. An undirected one is there twice.
	Links []Link
	// Texts are the projected texts of the nodes, Dim numbers each. Weigh changes them.
	Texts []float32
	Dim   int
	Seed  uint64
}

// Weigh returns the relations with their weights.
func Weigh(ctx context.Context, s Sample) ([]Relation, error) {
	out := slices.Clone(s.Relations)
	of := make([][]Link, len(out))
	for _, l := range s.Links {
		of[l.Relation] = append(of[l.Relation], l)
	}
	plain := true // no weight differs from another
	for k := range out {
		out[k].Links, out[k].Weight, out[k].Scale = len(of[k]), 1, 1
		for _, l := range of[k] {
			plain = plain && l.Weight == of[k][0].Weight
			if !(l.Weight > 0) {
				out[k].Weightless++
			}
		}
	}
	if plain && len(out) < 2 {
		return out, nil
	}
	s.centre()
	sums, asked := make([]*linear.Sums, len(out)), make([][]Link, len(out))
	for k := range out {
		var known []Link
		known, asked[k], out[k].Dated = hold(of[k], s.Seed)
		out[k].Asked = len(asked[k])
		sums[k] = linear.NewSums(s.Dim, s.Dim)
		if err := s.sum(ctx, sums[k], known); err != nil {
			return nil, err
		}
	}
	for range rounds {
		w, err := s.solve(sums, out)
		if errors.Is(err, linear.ErrSingular) {
			return out, nil // texts say nothing, of any relation
		}
		if err != nil {
			return nil, err
		}
		for k := range out {
			surplus := s.ask(w, asked[k])
			out[k].judge(surplus)
			out[k].Exponent = exponentOf(asked[k], surplus)
		}
		relate(out)
	}
	for k := range out {
		out[k].scale(of[k])
	}
	return out, ctx.Err()
}

// centre takes the mean off the texts, and makes each of length 1.
func (s Sample) centre() {
	mean := make([]float64, s.Dim)
	n := len(s.Texts) / s.Dim
	for i := range n {
		for k, x := range s.Texts[i*s.Dim : (i+1)*s.Dim] {
			mean[k] += float64(x)
		}
	}
	for i := range n {
		row := s.text(int32(i))
		for k := range row {
			row[k] -= float32(mean[k] / float64(n))
		}
		numeric.Normalize(row)
	}
}

func (s Sample) text(i int32) []float32 { return s.Texts[int(i)*s.Dim : (int(i)+1)*s.Dim] }

// hold divides the links of a relation into those that are known and those that are held out: the latest, or, if too
// many have the same time, some that a hash of both ends chooses.
func hold(links []Link, seed uint64) (known, held []Link, dated bool) {
	if len(links) == 0 {
		return nil, nil, false
	}
	times := make([]int64, len(links))
	for i, l := range links {
		times[i] = l.Time
	}
	slices.Sort(times)
	from := times[int((1-heldOut)*float64(len(times)))]
	first, _ := slices.BinarySearch(times, from)
	dated = float64(len(times)-first) <= 1.5*heldOut*float64(len(times))+1
	draw := func(l Link) float64 {
		r := numeric.NewRand(seed, stream, uint64(min(l.From, l.To)), uint64(max(l.From, l.To)))
		return r.Float64()
	}
	for _, l := range links {
		if dated && l.Time >= from || !dated && draw(l) < heldOut {
			held = append(held, l)
		} else {
			known = append(known, l)
		}
	}
	if len(held) > mostAsked {
		slices.SortFunc(held, func(a, b Link) int {
			return cmp.Or(cmp.Compare(draw(a), draw(b)), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
		})
		held = held[:mostAsked]
	}
	return known, held, dated
}

// sum adds links to the sums of the regression from the text of one end to that of the other.
func (s Sample) sum(ctx context.Context, to *linear.Sums, links []Link) error {
	x, y := make([]float32, 0, block*s.Dim), make([]float32, 0, block*s.Dim)
	for part := range slices.Chunk(links, block) {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, y = x[:0], y[:0]
		for _, l := range part {
			x, y = append(x, s.text(l.From)...), append(y, s.text(l.To)...)
		}
		to.Add(x, y)
	}
	return nil
}

// solve returns the map from the text of one end to that of the other, Dim × Dim, by the weights so far.
func (s Sample) solve(sums []*linear.Sums, by []Relation) ([]float64, error) {
	all := linear.NewSums(s.Dim, s.Dim)
	for k, part := range sums {
		for i, v := range part.G {
			all.G[i] += by[k].Weight * v
		}
		for i, v := range part.B {
			all.B[i] += by[k].Weight * v
		}
	}
	return all.Solve(ridge)
}

// ask returns of each link how surely its end is ranked before ends of other links of the relation: 1 for always, 0
// for as often as by chance.
func (s Sample) ask(w []float64, links []Link) []float64 {
	out := make([]float64, len(links))
	pairs := make([]uint64, len(links))
	for i, l := range links {
		pairs[i] = pairOf(l.From, l.To)
	}
	slices.Sort(pairs)
	predicted := make([]float64, s.Dim)
	score := func(i int32) (sum float64) {
		for k, x := range s.text(i) {
			sum += predicted[k] * float64(x)
		}
		return sum
	}
	for i, l := range links {
		clear(predicted)
		for k, x := range s.text(l.From) {
			for j := range predicted {
				predicted[j] += float64(x) * w[k*s.Dim+j]
			}
		}
		own, others := score(l.To), 0
		r := numeric.NewRand(s.Seed, stream, uint64(l.Relation), uint64(l.From), uint64(l.To))
		for range drawn {
			other := links[r.IntN(len(links))].To
			if _, linked := slices.BinarySearch(pairs, pairOf(l.From, other)); linked || other == l.From {
				continue
			}
			others++
			out[i] += float64(cmp.Compare(own, score(other)))
		}
		out[i] /= float64(max(1, others))
	}
	return out
}

func pairOf(from, to int32) uint64 { return uint64(uint32(from))<<32 | uint64(uint32(to)) }

// judge notes what the held-out links say.
func (r *Relation) judge(surplus []float64) {
	n := float64(len(surplus))
	if n == 0 {
		return
	}
	var sum, squares float64
	for _, x := range surplus {
		sum, squares = sum+x, squares+x*x
	}
	r.Surplus = sum / n
	r.Error = math.Sqrt(max(0, squares/n-r.Surplus*r.Surplus) / n)
}

// exponentOf returns the exponent by which a sum over the links, weighed, has the most signal for its noise:
// Σ w^e·surplus / √Σ w^2e.
func exponentOf(links []Link, surplus []float64) (best float64) {
	if len(links) < leastAsked {
		return 0
	}
	most := math.Inf(-1)
	for _, e := range exponents {
		var signal, noise float64
		for i, l := range links {
			if l.Weight > 0 {
				f := power(l.Weight, e)
				signal, noise = signal+f*surplus[i], noise+f*f
			}
		}
		if ratio := signal / math.Sqrt(max(noise, math.SmallestNonzeroFloat64)); ratio > most {
			best, most = e, ratio
		}
	}
	return best
}

// relate weighs the relations by each other.
func relate(all []Relation) {
	best := 0.0
	for _, r := range all {
		if r.Asked >= leastAsked && !r.noise() {
			best = max(best, r.Surplus)
		}
	}
	for k := range all {
		r := &all[k]
		switch {
		case best == 0 || r.Asked < leastAsked:
			r.Weight = 1 // nothing is known against it
		case r.noise():
			r.Weight = 0
		default:
			r.Weight = r.Surplus / best
		}
	}
}

// scale makes the weights of the relation's links 1 on average, before the relation's own.
func (r *Relation) scale(links []Link) {
	sum, n := 0.0, 0
	for _, l := range links {
		if l.Weight > 0 {
			sum, n = sum+power(l.Weight, r.Exponent), n+1
		}
	}
	if r.Scale = 1; n > 0 {
		r.Scale = float64(n) / sum
	}
}
