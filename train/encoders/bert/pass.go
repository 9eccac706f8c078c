package bert

import "giantstream/train/encoders/bert/compute"

// activations are what a forward pass in training keeps of one batch for the backward pass: 12
// numbers per token, layer and unit of hidden size at BERT's proportions. The outcome of GELU and
// the weights of attention, which would be more than that, are computed again.
type activations struct {
	embedded compute.Buffer // rows × hidden size
	layers   []layerActivations
	first    compute.Buffer // texts × hidden size: what the pooler, if it is used, gets
	pooled   compute.Buffer // texts × hidden size: the vectors of the texts, before the pooler's tanh
}

// layerActivations are the outcomes of the operations of one layer, in order.
type layerActivations struct {
	qkv      compute.Buffer // rows × 3 hidden sizes
	context  compute.Buffer // rows × hidden size, as those below
	attended compute.Buffer
	middle   compute.Buffer
	wide     compute.Buffer // rows × intermediate size, before GELU
	narrowed compute.Buffer
	out      compute.Buffer
}

func newActivations(m *Model, be compute.Backend, rows, texts int) *activations {
	h := m.config.HiddenSize
	a := &activations{embedded: be.New(rows * h), first: be.New(texts * h), pooled: be.New(texts * h)}
	for range m.layers {
		a.layers = append(a.layers, layerActivations{
			qkv: be.New(rows * 3 * h), context: be.New(rows * h), attended: be.New(rows * h), middle: be.New(rows * h),
			wide: be.New(rows * m.config.IntermediateSize), narrowed: be.New(rows * h), out: be.New(rows * h),
		})
	}
	return a
}

// buffers are all buffers of the activations.
func (a *activations) buffers() []compute.Buffer {
	all := []compute.Buffer{a.embedded, a.first, a.pooled}
	for _, l := range a.layers {
		all = append(all, l.qkv, l.context, l.attended, l.middle, l.wide, l.narrowed, l.out)
	}
	return all
}

// trainingBytes is what a pass and the activations of one batch take for a token, 4 bytes a number.
func (c Config) trainingBytes() int64 {
	h, wide := int64(c.HiddenSize), int64(c.IntermediateSize)
	// Of the 9 hidden sizes, 2 are for the 4 buffers with a row per text: a text has 2 tokens at least.
	return 4 * (9*h + 2*wide + int64(c.Layers)*(8*h+wide))
}

// pass is a training pass of a model: its gradients and the memory that is
// needed while one batch is under way.
type pass struct {
	model    *Model
	backend  compute.Backend
	pooling  compute.Pooling
	dropout  float64 // of BERT: of the embedded tokens, of each half of a layer and of attention
	gradient *weights

	wide, wideSlope compute.Buffer // rows × intermediate size: GELU's outcome, a gradient
	slope, inner    compute.Buffer // rows × hidden size: gradients
	dropped         compute.Buffer // the same: slope after drop-out
	qkvSlope        compute.Buffer // rows × 3 hidden sizes
	outcome         compute.Buffer // texts × hidden size
	pooledSlope     compute.Buffer // texts × hidden size
}

func newPass(m *Model, be compute.Backend, o TuneOptions, gradient *weights, rows, texts int) *pass {
	h, wide := m.config.HiddenSize, m.config.IntermediateSize
	return &pass{
		model: m, backend: be, pooling: o.Pooling, dropout: o.Dropout, gradient: gradient,
		wide: be.New(rows * wide), wideSlope: be.New(rows * wide),
		slope: be.New(rows * h), inner: be.New(rows * h), dropped: be.New(rows * h), qkvSlope: be.New(rows * 3 * h),
		outcome: be.New(texts * h), pooledSlope: be.New(texts * h),
	}
}

// buffers are all buffers of the pass but the gradients.
func (p *pass) buffers() []compute.Buffer {
	return []compute.Buffer{p.wide, p.wideSlope, p.slope, p.inner, p.dropped, p.qkvSlope, p.outcome, p.pooledSlope}
}

// pools says whether the pooler is between the hidden states and the outcome.
func (p *pass) pools() bool { return p.pooling == compute.First && p.model.pooler != nil }

// Sites of drop-out: of the input, and three in each layer.
const (
	siteTokens = iota // which tokens a text loses (thin)
	siteEmbedded
	siteLayers
)

const (
	siteAttention = iota
	siteAttended
	siteNarrowed
	layerSites
)

// dropoutAt returns the drop-out at a site of layer i.
func (p *pass) dropoutAt(i int, site uint64) compute.Dropout {
	return compute.Dropout{Rate: p.dropout, Site: siteLayers + uint64(i)*layerSites + site}
}

// drop is the drop-out of rows of hidden size, in place.
func (p *pass) drop(x compute.Buffer, b compute.Batch, d compute.Dropout) {
	if b.Seeds != nil && d.Rate > 0 {
		p.backend.Drop(x, x, b, p.model.config.HiddenSize, d)
	}
}

// through returns the gradient, slope, before drop-out; slope itself stays.
func (p *pass) through(slope compute.Buffer, b compute.Batch, d compute.Dropout) compute.Buffer {
	if b.Seeds == nil || d.Rate == 0 {
		return slope
	}
	p.backend.Drop(p.dropped, slope, b, p.model.config.HiddenSize, d)
	return p.dropped
}

// embedded is the drop-out of the embedded tokens.
func (p *pass) embedded() compute.Dropout {
	return compute.Dropout{Rate: p.dropout, Site: siteEmbedded}
}

// forward is Model.Pool, but keeps the activations and, where b has seeds, applies drop-out. The
// buffer belongs to p or a.
func (p *pass) forward(a *activations, b compute.Batch) compute.Buffer {
	be, m, rows := p.backend, p.model, b.Rows()
	h, heads := m.config.HiddenSize, m.config.Heads
	be.Embed(a.embedded, b, &m.embedding)
	p.drop(a.embedded, b, p.embedded())
	in := a.embedded
	for i := range m.layers {
		l, k := &m.layers[i], &a.layers[i]
		be.Linear(k.qkv, in, rows, l.qkv, compute.Identity)
		be.Attend(k.context, k.qkv, b, heads, h/heads, p.dropoutAt(i, siteAttention))
		be.Linear(k.attended, k.context, rows, l.attend, compute.Identity)
		p.drop(k.attended, b, p.dropoutAt(i, siteAttended))
		be.AddNorm(k.middle, k.attended, in, rows, &l.norm)
		be.Linear(k.wide, k.middle, rows, l.widen, compute.Identity)
		be.Activate(p.wide, k.wide, rows*m.config.IntermediateSize, compute.GELU)
		be.Linear(k.narrowed, p.wide, rows, l.narrow, compute.Identity)
		p.drop(k.narrowed, b, p.dropoutAt(i, siteNarrowed))
		be.AddNorm(k.out, k.narrowed, k.middle, rows, &l.last)
		in = k.out
	}
	if !p.pools() {
		be.Pool(a.pooled, in, b, h, p.pooling)
		return a.pooled
	}
	be.Pool(a.first, in, b, h, compute.First)
	be.Linear(a.pooled, a.first, b.Texts(), m.pooler, compute.Identity)
	be.Activate(p.outcome, a.pooled, b.Texts()*h, compute.Tanh)
	return p.outcome
}

// backward adds to the gradients. slope, texts × hidden size, is the gradient of forward's result;
// backward overwrites it.
func (p *pass) backward(a *activations, b compute.Batch, slope compute.Buffer) {
	be, m, g, rows := p.backend, p.model, p.gradient, b.Rows()
	h, heads := m.config.HiddenSize, m.config.Heads
	d := p.slope
	if p.pools() {
		be.ActivateBackward(slope, slope, a.pooled, b.Texts()*h, compute.Tanh)
		be.LinearGradient(g.pooler, a.first, slope, b.Texts())
		be.LinearBackward(p.outcome, slope, b.Texts(), m.pooler, false)
		slope = p.outcome
	}
	be.PoolBackward(d, slope, b, h, p.pooling)
	for i := len(m.layers) - 1; i >= 0; i-- {
		l, dl, k := &m.layers[i], &g.layers[i], &a.layers[i]
		in := a.embedded
		if i > 0 {
			in = a.layers[i-1].out
		}
		wide := rows * m.config.IntermediateSize
		// d is the gradient of both summands. It is needed again for the residual.
		be.AddNormBackward(&dl.last, d, d, k.narrowed, k.middle, rows, &l.last)
		be.Activate(p.wide, k.wide, wide, compute.GELU)
		inside := p.through(d, b, p.dropoutAt(i, siteNarrowed))
		be.LinearGradient(dl.narrow, p.wide, inside, rows)
		be.LinearBackward(p.wideSlope, inside, rows, l.narrow, false)
		be.ActivateBackward(p.wideSlope, p.wideSlope, k.wide, wide, compute.GELU)
		be.LinearGradient(dl.widen, k.middle, p.wideSlope, rows)
		be.LinearBackward(d, p.wideSlope, rows, l.widen, true)

		be.AddNormBackward(&dl.norm, d, d, k.attended, in, rows, &l.norm)
		inside = p.through(d, b, p.dropoutAt(i, siteAttended))
		be.LinearGradient(dl.attend, k.context, inside, rows)
		be.LinearBackward(p.inner, inside, rows, l.attend, false)
		be.AttendBackward(p.qkvSlope, p.inner, k.qkv, b, heads, h/heads, p.dropoutAt(i, siteAttention))
		be.LinearGradient(dl.qkv, in, p.qkvSlope, rows)
		be.LinearBackward(d, p.qkvSlope, rows, l.qkv, true)
	}
	p.drop(d, b, p.embedded())
	be.EmbedBackward(&g.embedding, d, b, &m.embedding)
}
