package answer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"giantstream/train/answer/filter"
	"giantstream/train/nearest"
	"giantstream/train/numeric"
)

// Errors of questions.
var (
	// ErrEmpty: there is no generation yet, or its embeddings are still being read.
	ErrEmpty = errors.New("no embeddings yet")
	// ErrUnknown: no node has this id.
	ErrUnknown = errors.New("no such node")
	// ErrNoText: the text, or the node's, has nothing that the encoder knows, so that it is near to nothing.
	ErrNoText = errors.New("no text that the encoder knows")
	// ErrCancel: the sum of what is asked about is near to nothing.
	ErrCancel = errors.New("the weights cancel each other")
)

// Wanted says which answers to a question are wanted.
type Wanted struct {
	// K answers behind the first Offset ones. If as many are allowed by what follows, K are answered.
	K, Offset int
	// Where the answers match, nil for any.
	Where *filter.Expr
	// Exclude has ids of nodes that are no answer. What does not exist is none either.
	Exclude []string
	// ExcludeSame names attributes: a node is no answer that has a value of one of them, of a list an element, which a
	// node asked about has as well.
	ExcludeSame []string
	// Distinct names an attribute, not one of lists, of which each value is in one answer at most; "" for none. Nodes
	// without the attribute are answers each.
	Distinct string
	// Diversity, from 0 to 1, is how much answers of Similar are to be unlike each other, in the place of like what was
	// asked about.
	Diversity float64
	// Show names attributes that come with the answers.
	Show []string
	// Explain has the reasons come with the answers.
	Explain bool
}

// Like is a node or a text to find similar nodes to.
type Like struct {
	ID string
	// Text is taken as if it were a new node's if ID is "".
	Text string
	// Vector is that of the text (VectorsOf), nil for none.
	Vector []float32
	// Weight in the sum, negative for what the answers are to be unlike.
	Weight float64
}

// Nearest is the nearest nodes by a generation's embeddings: the nearest first, or with Diversity as they were chosen.
type Nearest struct {
	Generation int64
	Neighbours []Neighbour
	Filtered   *Filtered // nil without a filter
	// Without names a view that a text asked about lacks, and nodes have; "" for none.
	Without string
}

// Filtered says what the filters of a question have left.
type Filtered struct {
	Attributes []string // that were compared, sorted
	// Matched of the index's Places, which include those of deleted nodes.
	Matched, Places int
}

// Neighbour is a node near another, or near a text.
type Neighbour struct {
	ID         string
	Cosine     float32
	Attributes map[string]any // those that were to be shown, nil for none
	// Because has the parts of the cosine, nil if they were not asked for, or for the reason WhyNot.
	Because *Parts
	WhyNot  string
}

// Similar returns the nodes nearest to the weighted sum of embeddings of unit length; nodes without one add nothing,
// unless none has one. Nodes asked about are not answered. Errors are those of this package, and filter.Error.
func (c *Catalog) Similar(like []Like, w Wanted) (Nearest, error) {
	s := c.now.Load()
	if s == nil {
		return Nearest{}, ErrEmpty
	}
	if err := w.checkDiversity(); err != nil {
		return Nearest{}, err
	}
	if !w.Explain {
		out, _, err := s.similar(like, &w)
		return out, err
	}
	if _, err := c.texts.get(nil); err != nil {
		return Nearest{}, err
	}
	out, found, err := s.similar(like, &w)
	if err != nil {
		return Nearest{}, err
	}
	ids := make([]string, len(out.Neighbours))
	for i, n := range out.Neighbours {
		ids[i] = n.ID
	}
	texts, err := c.texts.get(ids)
	if err != nil {
		return Nearest{}, err
	}
	return out, s.explain(out.Neighbours, found, texts)
}

// found is what reasons are made of: what the answers are near to, and their vectors and lengths as the index has them.
type found struct {
	sum     []float32
	vectors [][]float32
	lengths []float32
}

// similar is Similar without reasons.
func (s *state) similar(like []Like, w *Wanted) (out Nearest, f found, err error) {
	texts, without, err := s.embedded(like)
	if err != nil {
		return out, f, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if f.sum, err = s.sum(like, texts); err != nil {
		return out, f, err
	}
	var asked []string
	for _, one := range like {
		if one.ID != "" {
			asked = append(asked, one.ID)
		}
	}
	p, err := s.pool(asked, w)
	if err != nil {
		return out, f, err
	}
	view := s.view
	if without != "" {
		view = ""
	}
	p.lengths = s.beside.lengths(s.has(like, view))
	var near []nearest.Neighbour
	if w.Diversity > 0 {
		near = p.diverse(f.sum, w.Offset+w.K, w.Diversity)
	} else {
		near = p.nearest(f.sum, w.Offset+w.K)
	}
	out = Nearest{Generation: s.generation.Doc.Generation, Filtered: p.filtered(w), Without: without}
	for _, n := range near[min(w.Offset, len(near)):] {
		out.Neighbours = append(out.Neighbours, Neighbour{ID: n.ID, Cosine: min(1, n.Cosine),
			Attributes: s.show(n.ID, w)})
		if w.Explain {
			v := make([]float32, s.index.Dim())
			s.index.Vector(n.ID, v)
			f.vectors, f.lengths = append(f.vectors, v), append(f.lengths, p.lengthOf(n.ID)/max(1, n.Cosine))
		}
	}
	return out, f, nil
}

// embedded returns the embeddings of the texts in their order.
func (s *state) embedded(like []Like) (vectors [][]float32, without string, err error) {
	var texts []string
	var own [][]float32
	for _, one := range like {
		if one.ID == "" {
			texts, own = append(texts, one.Text), append(own, one.Vector)
		}
	}
	if len(texts) == 0 {
		return nil, "", nil
	}
	records, without, err := s.embed(texts, own)
	for _, r := range records {
		vectors = append(vectors, r.Vector)
	}
	return vectors, without, err
}

// sum adds up what is asked about. An embedding alone stays as it is.
func (s *state) sum(like []Like, texts [][]float32) ([]float32, error) {
	var size float64
	sum, stored := make([]float32, s.index.Dim()), make([]float32, s.index.Dim())
	for _, one := range like {
		v := stored
		switch {
		case one.ID == "":
			v, texts = texts[0], texts[1:]
			if len(v) == 0 {
				continue
			}
		case !s.index.Vector(one.ID, v):
			if _, known := s.index.Handle(one.ID); !known {
				return nil, unknown(one.ID)
			}
			continue
		}
		numeric.Normalize(v)
		for i := range sum {
			sum[i] += float32(one.Weight) * v[i]
		}
		size += math.Abs(one.Weight)
	}
	switch {
	case size > 0 && math.Sqrt(float64(numeric.Dot(sum, sum))) > 1e-3*size: // the index knows vectors about as well
		return sum, nil
	case size > 0:
		return nil, ErrCancel
	case len(like) == 1 && like[0].ID != "":
		return nil, fmt.Errorf("node %q: %w", like[0].ID, ErrNoText)
	}
	var words []string
	for _, one := range like {
		words = append(words, strings.Fields(one.Text)...)
	}
	return nil, fmt.Errorf("%w: it knows nothing of %s", ErrNoText, quoted(words))
}

// quoted lists some words of a question, cut to what a line can show.
func quoted(words []string) string {
	const most, longest = 10, 40
	if len(words) == 0 {
		return "an empty text"
	}
	var out []string
	for _, w := range words[:min(len(words), most)] {
		if len(w) > longest {
			w = strings.ToValidUTF8(w[:longest], "") + "…"
		}
		out = append(out, strconv.Quote(w))
	}
	if len(words) > most {
		out = append(out, fmt.Sprintf("%d words more", len(words)-most))
	}
	return strings.Join(out, ", ")
}

func unknown(id string) error {
	return fmt.Errorf("%w: %q; ids are compared byte by byte", ErrUnknown, id)
}

// pool is the nodes that may be an answer.
type pool struct {
	*state
	in       filter.Set      // nil for all
	out      map[string]bool // ids of nodes that are none even so
	distinct string
	lengths  func(h int32) float32 // of the nodes beside the views that the question has, nil for 1
}

// pool returns the nodes that are wanted.
func (s *state) pool(asked []string, w *Wanted) (p *pool, err error) {
	p = &pool{state: s, out: map[string]bool{}, distinct: w.Distinct}
	for _, id := range slices.Concat(asked, w.Exclude) {
		p.out[id] = true
	}
	if err := s.attributes.Check(w.Show); err != nil {
		return nil, err
	}
	if w.Where != nil {
		if p.in, err = s.attributes.Select(w.Where, s.index.Handles()); err != nil {
			return nil, err
		}
	}
	for _, attribute := range w.ExcludeSame {
		seen, err := s.attributes.Seen(attribute)
		if err != nil {
			return nil, err
		}
		for _, id := range asked {
			if h, known := s.index.Handle(id); known {
				seen.Add(h)
			}
		}
		if p.in == nil {
			p.in = filter.Full(s.index.Handles())
		}
		seen.Drop(p.in)
	}
	if w.Distinct != "" {
		_, err = s.attributes.Distinct(w.Distinct)
	}
	return p, err
}

// filtered says what the filters have left, nil without filters.
func (p *pool) filtered(w *Wanted) *Filtered {
	if p.in == nil {
		return nil
	}
	names := slices.Clone(w.ExcludeSame)
	if w.Where != nil {
		names = append(names, w.Where.Attributes()...)
	}
	slices.Sort(names)
	return &Filtered{slices.Compact(names), p.in.Len(), p.index.Handles()}
}

// has says whether a node exists that may be an answer.
func (p *pool) has(id string) bool {
	h, known := p.index.Handle(id)
	return known && (p.in == nil || p.in.Has(h)) && !p.out[id]
}

// excluding returns a pool that lacks some nodes besides.
func (p *pool) excluding(ids map[string]bool) *pool {
	other := *p
	other.out = maps.Clone(p.out)
	maps.Copy(other.out, ids)
	return &other
}

// nearest returns the n nodes nearest to v.
func (p *pool) nearest(v []float32, n int) []nearest.Neighbour {
	if p.distinct != "" {
		return p.nearestDistinct(v, n)
	}
	found := p.index.Search(v, n+len(p.out), p.in, p.lengths)
	found = slices.DeleteFunc(found, func(one nearest.Neighbour) bool { return p.out[one.ID] })
	return found[:min(n, len(found))]
}

// nearestDistinct searches in rounds. Each takes the nearest that share no value with a nearer one, and then leaves
// out all that share one with these, so that the next finds others.
func (p *pool) nearestDistinct(v []float32, n int) (all []nearest.Neighbour) {
	in := slices.Clone(p.in)
	if in == nil {
		in = filter.Full(p.index.Handles())
	}
	for id := range p.out {
		p.drop(in, id)
	}
	seen, _ := p.attributes.Distinct(p.distinct) // pool has checked the name
	for len(all) < n {
		const perValue = 4 // a guess: the fewer, the more rounds
		found := p.index.Search(v, perValue*(n-len(all)), in, p.lengths)
		if len(found) == 0 {
			return all
		}
		for _, one := range found {
			p.drop(in, one.ID)
			if h, _ := p.index.Handle(one.ID); len(all) < n && seen.Add(h) {
				all = append(all, one)
			}
		}
		seen.Drop(in)
	}
	return all
}

// drop takes a node out of a set.
func (p *pool) drop(from filter.Set, id string) {
	if h, known := p.index.Handle(id); known {
		from.Clear(h)
	}
}

// show returns the attributes of a node that are wanted.
func (s *state) show(id string, w *Wanted) map[string]any {
	h, known := s.index.Handle(id)
	if !known || len(w.Show) == 0 {
		return nil
	}
	return s.attributes.Values(h, w.Show)
}

// Embedded is embeddings of texts.
type Embedded struct {
	Generation int64
	Dim        int
	// Vectors has nil for a text that has nothing that the encoder knows.
	Vectors [][]float32
	// Without names a view that a text lacks, and nodes have; "" for none.
	Without string
}

// Embed returns the embeddings of texts, with the vectors that are known of them (VectorsOf).
func (c *Catalog) Embed(texts []string, vectors map[string][]float32) (Embedded, error) {
	s := c.now.Load()
	if s == nil {
		return Embedded{}, ErrEmpty
	}
	out := Embedded{Generation: s.generation.Doc.Generation, Dim: s.index.Dim()}
	for part := range slices.Chunk(texts, batch) {
		own := make([][]float32, len(part))
		for i, text := range part {
			own[i] = vectors[text]
		}
		records, without, err := s.embed(part, own)
		if err != nil {
			return Embedded{}, err
		}
		for _, r := range records {
			out.Vectors = append(out.Vectors, r.Vector)
		}
		out.Without = cmp.Or(out.Without, without)
	}
	return out, nil
}
