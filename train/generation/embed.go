package generation

import (
	"context"
	"fmt"
	"iter"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/eval"
	"giantstream/train/lsa"
)

// encode embeds every node.
func (f *building) encode() error {
	texts := f.corpus.texts
	f.clock.Stage("encode all nodes", int64(texts.len()))
	var err error
	f.vectors, err = encodeAll(f.ctx, f.encoder, texts, f.clock)
	return err
}

// encodeAll returns the embeddings of all texts, a row each.
func encodeAll(ctx context.Context, e train.Encoder, t *texts, p train.Progress) ([]float32, error) {
	dim := e.Dim()
	out := make([]float32, t.len()*dim)
	return out, t.blocks(ctx, p, func(lo int, texts []string) error {
		return e.Encode(texts, out[lo*dim:(lo+len(texts))*dim])
	})
}

// Evaluation is how well one encoder's embeddings predict what they have not
// seen: held-out links, and the nodes' classes.
type Evaluation struct {
	Encoder string            `json:"encoder"`
	Dim     int               `json:"dim"`
	Links   *eval.LinkMetrics `json:"links,omitempty"`
	Probes  []ProbeResult     `json:"probes,omitempty"`
}

// ProbeResult is a class probe trained on a share of the labelled nodes.
type ProbeResult struct {
	Rate float64 `json:"rate"`
	eval.ProbeMetrics
}

// evaluateText measures the text-only baseline. From here on nothing is asked
// of what the encoder was trained on, so that memory has room for embeddings.
func (f *building) evaluateText() error {
	f.labels = nil
	f.warn(f.features.spool.close())
	f.clock.Stage("evaluate text alone", 0)
	result, err := f.measureText()
	f.doc.Evaluation = []Evaluation{result}
	f.warn(f.projected.spool.close())
	return err
}

// evaluate measures the encoder.
func (f *building) evaluate() error {
	f.clock.Stage("evaluate", 0)
	result, err := f.measure(f.encoder.Kind(), f.vectors, f.encoder.Dim())
	f.doc.Evaluation = append(f.doc.Evaluation, result)
	return err
}

// measureText measures the projections themselves.
func (f *building) measureText() (Evaluation, error) {
	n, dim := f.known.Len(), f.pifaDim
	vectors := make([]float32, n*dim)
	if err := f.projected.rows(0, n, dim, vectors, f.Workers); err != nil {
		return Evaluation{}, err
	}
	lsa.Normalize(vectors, dim)
	return f.measure(lsa.Kind, vectors, dim)
}

func (f *building) measure(kind string, vectors []float32, dim int) (Evaluation, error) {
	s := f.doc.Settings
	out := Evaluation{Encoder: kind, Dim: dim}
	if len(f.hidden) > 0 {
		links, err := eval.Links(vectors, dim, f.known, f.hidden, eval.LinkOptions{Seed: s.EvalSeed, Workers: f.Workers})
		if err != nil {
			return out, err
		}
		out.Links = &links
	}
	if f.corpus.stats.Classes < 2 {
		return out, nil
	}
	for _, rate := range s.ProbeRates {
		m, err := eval.Probe(vectors, dim, f.known.Classes, eval.ProbeOptions{Fraction: rate, Seed: s.EvalSeed, Workers: f.Workers})
		if err != nil {
			f.Log.Warn("class probe left out", "rate", rate, "error", err)
			continue
		}
		out.Probes = append(out.Probes, ProbeResult{rate, m})
	}
	return out, nil
}

// writeEmbeddings stores every node's embedding, one part per shard.
func (f *building) writeEmbeddings() error {
	f.clock.Stage("write embeddings", int64(f.known.Len()))
	f.doc.Embeddings = nil
	for shard, nodes := range f.corpus.byShard() {
		key := f.key(fmt.Sprintf("embeddings/part-%05d.parquet", shard))
		info, err := embedding.WriteParquet(f.ctx, f.Store, key, f.records(nodes))
		if err != nil {
			return err
		}
		f.doc.Embeddings = append(f.doc.Embeddings, Part{key, shard, info.Rows, info.Bytes, info.CRC32C})
	}
	return nil
}

func (f *building) records(nodes []int32) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		dim := f.encoder.Dim()
		for _, i := range nodes {
			f.clock.Add(1)
			meta := f.corpus.meta[i]
			r := embedding.Record{NodeID: f.known.IDs[i], Generation: f.doc.Generation,
				Vector: f.vectors[int(i)*dim : (int(i)+1)*dim], EventTime: meta.eventTime,
				Shard: int(meta.shard), Seq: meta.seq}
			if !yield(r, nil) {
				return
			}
		}
	}
}
