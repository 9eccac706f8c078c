package drift

import (
	"context"
	"fmt"
	"math"
	"strings"

	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

const (
	// sampledNodes is how many nodes' embeddings at the cut are kept, about, and how many new nodes' n-grams.
	sampledNodes = 4096
	// knownEdges is how many edges of the cut are remembered, about, to tell which are fresh.
	knownEdges = 1 << 16
	// batch is how many texts are encoded at a time.
	batch = 256
)

// Meter measures what has drifted since the cut of a generation. Not safe for concurrent use.
type Meter struct {
	generation *generation.Generation
	projection *projection.Projection
	undirected bool
	weighting  pifa.Weighting
	ngrams     *float64 // unknown, at the cut
	bounds     bounds

	published map[uint64]*node
	known     map[uint64]struct{} // edges at the cut
	pool      *lowest[negative]
	hidden    *links
	centres   *centres // nil where labels have no PIFA
	held      *labels
	atCut     [mostInstances]float64
	auc       Measure // of the hidden edges

	fresh  *lowest[tfidf.NGrams] // of the nodes that are new since the cut
	links  *links
	labels *labels
	upto   map[int]int64

	queue []encoding
}

// node is one of the cut, with what was published.
type node struct {
	text   uint64
	vector []float32
	cosine *float64 // of its text now, nil for the same text
}

// bounds are those of the hashes that belong to a sample of what there is at the cut.
type bounds struct {
	published, edges, hidden, pool, held, instances uint64
}

// encoding is a text that waits to be encoded.
type encoding struct {
	id, text string
	done     func(vector []float32)
}

// New returns a meter for an opened generation. Learn comes next.
func New(g *generation.Generation, undirected bool) (*Meter, error) {
	doc := g.Doc
	m := &Meter{generation: g, undirected: undirected, published: map[uint64]*node{}, known: map[uint64]struct{}{},
		pool: newLowest[negative](2 * poolSize), hidden: newLinks(), held: newLabels(),
		fresh: newLowest[tfidf.NGrams](sampledNodes), links: newLinks(), labels: newLabels(), upto: map[int]int64{}}
	m.ngrams = finite(doc.Vectorizer.UnknownShare)
	stated := max(1, doc.Graph.Links)
	m.bounds = bounds{published: upTo(sampledNodes, doc.Graph.Nodes), edges: upTo(knownEdges, stated),
		hidden: upTo(sampledEdges, doc.Graph.Hidden), pool: upTo(poolSize, stated),
		held:      min(upTo(sampledLabels, doc.Graph.Nodes), math.MaxUint64/4),
		instances: upTo(centreInstances, doc.Graph.Nodes)}
	var err error
	if m.weighting, err = pifa.ParseWeighting(doc.Settings.Weighting); err != nil {
		return nil, fmt.Errorf("generation %d: %w", doc.Generation, err)
	}
	if m.projection, err = g.Projection.Truncate(min(doc.Settings.EmbeddingDim, g.Projection.Dim())); err != nil {
		return nil, err
	}
	if kind, err := pifa.ParseKind(doc.Settings.LabelFeatures); err == nil && kind == pifa.PIFA && doc.TextOnly == "" {
		m.centres = newCentres(g.Tree, m.projection.Dim())
	}
	return m, nil
}

// Learn reads the generation's own cut, once.
func (m *Meter) Learn(ctx context.Context, cut generation.Source) error {
	for r, err := range cut.Rows(ctx) {
		if err != nil {
			return fmt.Errorf("measure drift: read the cut: %w", err)
		}
		if r.Deleted {
			continue
		}
		if err := m.learn(&r.Row); err != nil {
			return err
		}
	}
	if err := m.flush(); err != nil {
		return err
	}
	if m.centres != nil {
		m.centres.finish()
		m.atCut = m.centres.profile(m.held)
	}
	m.auc = m.hidden.auc(m.negatives())
	m.hidden, m.held = nil, nil // they have said what they know
	for shard, seq := range cut.Cut() {
		m.upto[shard] = seq
	}
	return nil
}

func (m *Meter) negatives() []negative {
	out := make([]negative, 0, len(m.pool.hashes))
	for _, n := range m.pool.ascending {
		out = append(out, n)
	}
	return out
}

func (m *Meter) learn(r *rows.Row) error {
	s := m.generation.Doc.Settings
	self := numeric.HashString(r.NodeID)
	if h := hashOf(hashNode, self); h <= m.bounds.published {
		n := &node{text: numeric.HashString(r.Text)}
		m.published[h] = n
		m.encode(r.NodeID, r.Text, func(v []float32) { n.vector = v })
	}
	asked := false
	for _, l := range r.Labels {
		if _, there := m.generation.Label(l); !there || l == r.NodeID {
			continue
		}
		other := numeric.HashString(l)
		e := edgeHash(self, other)
		if e <= m.bounds.edges {
			m.known[e] = struct{}{}
		}
		if h := hashOf(hashPool, self, other); h <= m.bounds.pool && m.pool.admits(h) {
			m.pool.put(h, negative{id: strings.Clone(r.NodeID)})
			m.encode(r.NodeID, r.Text, func(v []float32) {
				if n, still := m.pool.values[h]; still {
					n.vector = v
					m.pool.values[h] = n
				}
			})
		}
		if m.undirected && e <= m.bounds.hidden && eval.Hide(self, other, s.Holdout, s.EvalSeed) {
			m.hidden.state(e, r.NodeID, l)
			asked = true
		}
	}
	if asked {
		m.encodeEnd(m.hidden, r)
	}
	m.learnLabels(r, self)
	return m.flushFull()
}

// learnLabels counts a row of the cut for the centres of its labels' clusters, or for labels that are held out.
func (m *Meter) learnLabels(r *rows.Row, self uint64) {
	if m.centres == nil {
		return
	}
	sampled := hashOf(hashInstance, self) <= m.bounds.instances
	var vector []float32
	for _, l := range r.Labels {
		at, there := m.generation.Label(l)
		if !there || l == r.NodeID {
			continue
		}
		cluster := m.generation.Tree.Cluster(m.centres.level, int(at))
		h := hashOf(hashLabel, numeric.HashString(l))
		held := h <= m.bounds.held
		if cluster < 0 || !held && !sampled {
			continue
		}
		if vector == nil {
			vector = m.project(r)
		}
		if held {
			m.held.add(h, l, true, r.NodeID, vector)
		} else {
			numeric.Axpy(1, vector, m.centres.row(cluster))
		}
	}
}

// project returns what a row adds to the features of its labels.
func (m *Meter) project(r *rows.Row) []float32 {
	out := make([]float32, m.projection.Dim())
	m.projection.Apply(m.generation.Vectorizer.Transform(r.Text, sparse.Vector{}), out)
	if w := m.weighting.WeightOf(float64(len(r.Labels))); w != 1 {
		for k := range out {
			out[k] *= w
		}
	}
	return out
}

// Apply counts a row that was committed after the cut. Rows of a node come in the order of their manifests.
func (m *Meter) Apply(r *rows.Row) error {
	self := numeric.HashString(r.NodeID)
	h := hashOf(hashNode, self)
	if r.Deleted {
		m.fresh.remove(h)
		m.links.restate(r.NodeID, nil)
		m.labels.restate(r.NodeID, nil)
		delete(m.published, h)
		return nil
	}
	if n := m.published[h]; n != nil {
		m.applyText(n, r.NodeID, r.Text)
	} else if _, there := m.generation.Label(r.NodeID); !there && m.fresh.admits(h) {
		_, ngrams := m.generation.Vectorizer.TransformCounting(r.Text, sparse.Vector{})
		m.fresh.put(h, ngrams)
	}
	if m.undirected {
		m.applyLinks(r, self)
	}
	m.applyLabels(r)
	return m.flushFull()
}

// applyText compares a text with the one that was published.
func (m *Meter) applyText(n *node, id, text string) {
	if numeric.HashString(text) == n.text {
		n.cosine = nil
		return
	}
	m.encode(id, text, func(v []float32) {
		if v != nil && n.vector != nil {
			n.cosine = new(float64(numeric.Dot(v, n.vector)))
		}
	})
}

func (m *Meter) applyLinks(r *rows.Row, self uint64) {
	m.links.restate(r.NodeID, r.Labels)
	for _, l := range r.Labels {
		e := edgeHash(self, numeric.HashString(l))
		if e > m.bounds.edges || l == r.NodeID {
			continue
		}
		if _, known := m.known[e]; !known {
			m.links.state(e, r.NodeID, l)
		}
	}
	m.encodeEnd(m.links, r)
}

// encodeEnd encodes a row's text if it is the end of a sampled edge.
func (m *Meter) encodeEnd(l *links, r *rows.Row) {
	if e := l.ends[r.NodeID]; e != nil {
		m.encode(r.NodeID, r.Text, func(v []float32) { e.vector = v })
	}
}

func (m *Meter) applyLabels(r *rows.Row) {
	if m.centres == nil {
		return
	}
	m.labels.restate(r.NodeID, r.Labels)
	var vector []float32
	for _, l := range r.Labels {
		at, there := m.generation.Label(l)
		if l == r.NodeID || there && m.generation.Tree.Cluster(0, int(at)) >= 0 {
			continue
		}
		h := hashOf(hashLabel, numeric.HashString(l))
		if !m.labels.sample.admits(h) {
			continue
		}
		if vector == nil {
			vector = m.project(r)
		}
		m.labels.add(h, l, there, r.NodeID, vector)
	}
}

// Covers notes that all rows of a shard up to a manifest are in.
func (m *Meter) Covers(shard int, seq int64) { m.upto[shard] = seq }

// Upto returns the newest manifest of a shard whose rows are in.
func (m *Meter) Upto(shard int) int64 { return m.upto[shard] }

// encode has a node encoded with the next batch. A text without an embedding gives nil.
func (m *Meter) encode(id, text string, done func([]float32)) {
	m.queue = append(m.queue, encoding{strings.Clone(id), strings.Clone(text), done})
}

func (m *Meter) flushFull() error {
	if len(m.queue) < batch {
		return nil
	}
	return m.flush()
}

func (m *Meter) flush() error {
	queue := m.queue
	m.queue = nil
	ids, texts := make([]string, len(queue)), make([]string, len(queue))
	for i, q := range queue {
		ids[i], texts[i] = q.id, q.text
	}
	dim := m.generation.Encoder.Dim()
	vectors := make([]float32, len(texts)*dim)
	if err := m.generation.Encode(ids, texts, vectors); err != nil {
		return fmt.Errorf("measure drift: encode: %w", err)
	}
	for i, q := range queue {
		v := vectors[i*dim : (i+1)*dim : (i+1)*dim]
		if numeric.Normalize(v) == 0 {
			v = nil
		} else {
			v = append([]float32(nil), v...) // a batch as a whole would stay in memory with any of it
		}
		q.done(v)
	}
	return nil
}
