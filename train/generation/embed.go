package generation

import (
	"fmt"
	"iter"

	"giantstream/sink/embedding"
	"giantstream/train/eval"
	"giantstream/train/lsa"
)

// encodeBlock is how many texts are encoded at a time.
const encodeBlock = 4096

// encode embeds every node.
func (f *building) encode() error {
	texts := f.corpus.graph.Texts
	f.clock.Stage("encode all nodes", int64(len(texts)))
	dim := f.encoder.Dim()
	f.vectors = make([]float32, len(texts)*dim)
	for lo := 0; lo < len(texts); lo += encodeBlock {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+encodeBlock, len(texts))
		if err := f.encoder.Encode(texts[lo:hi], f.vectors[lo*dim:hi*dim]); err != nil {
			return err
		}
		f.clock.Add(int64(hi - lo))
	}
	return nil
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

// evaluate measures the encoder beside the text-only baseline.
func (f *building) evaluate() error {
	f.clock.Stage("evaluate", 0)
	rank := f.projection.Dim()
	dim := f.pifaDim
	f.doc.Evaluation = nil
	for _, e := range []struct {
		kind    string
		vectors []float32
		dim     int
	}{
		{lsa.Kind, lsa.Truncate(f.projected, rank, dim), dim},
		{f.encoder.Kind(), f.vectors, f.encoder.Dim()},
	} {
		result, err := f.measure(e.kind, e.vectors, e.dim)
		if err != nil {
			return err
		}
		f.doc.Evaluation = append(f.doc.Evaluation, result)
	}
	return nil
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
