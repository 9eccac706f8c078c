package generation

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// embeddings are what an encoder has made of all nodes.
type embeddings struct {
	vectors []float32 // n × dim
	dim     int
	status  []embedding.Status
}

// ExamOf returns what embeddings are evaluated on: known and hidden edges of nodes that have a text which the
// encoder of these vectors, a row each, knows something of.
func ExamOf(texts *fit.Texts, vectors []float32, dim int, known *train.Graph, hidden []eval.Edge) (fit.Exam, error) {
	status, err := statuses(texts, vectors, dim)
	if err != nil {
		return fit.Exam{}, err
	}
	return examWithout(status, known, hidden), nil
}

// statuses says which nodes the encoder has made a vector of.
func statuses(texts *fit.Texts, vectors []float32, dim int) ([]embedding.Status, error) {
	out := make([]embedding.Status, texts.Len())
	for i := range out {
		text, err := texts.Text(i)
		if err != nil {
			return nil, err
		}
		var r embedding.Record
		r.SetVector(text, vectors[i*dim:(i+1)*dim])
		out[i] = r.Status
	}
	return out, nil
}

// examWithout returns what embeddings are evaluated on: the classes of the nodes that have a text,
// and the hidden edges between them.
func examWithout(status []embedding.Status, known *train.Graph, hidden []eval.Edge) fit.Exam {
	missing := func(i int32) bool { return status[i] == embedding.NoText }
	x := fit.Exam{Known: known, Hidden: hidden}
	if slices.Contains(status, embedding.NoText) {
		graph := *known
		graph.Classes = slices.Clone(known.Classes)
		for i := range graph.Classes {
			if missing(int32(i)) {
				graph.Classes[i] = ""
			}
		}
		x.Known, x.Hidden = &graph, nil
		for _, h := range hidden {
			if missing(h.Src) || missing(h.Dst) {
				x.Left = append(x.Left, h)
			} else {
				x.Hidden = append(x.Hidden, h)
			}
		}
	}
	classes := slices.Clone(x.Known.Classes)
	slices.Sort(classes)
	classes = slices.DeleteFunc(slices.Compact(classes), func(c string) bool { return c == "" })
	x.Classes = len(classes)
	return x
}

// fillFromNeighbours gives nodes without text the normalized mean of those of their neighbours that
// have a text, and returns how many have any.
func (e *embeddings) fillFromNeighbours(g *train.Graph) (filled int) {
	for i, s := range e.status {
		if s != embedding.NoText {
			continue
		}
		var with []int32
		for _, j := range g.Neighbours.Row(i).Index {
			if e.status[j] == embedding.FromText {
				with = append(with, j)
			}
		}
		if fit.Mean(e.vectors, e.dim, with, e.row(i)) {
			e.status[i] = embedding.FromNeighbours
			filled++
		}
	}
	return filled
}

func (e *embeddings) row(i int) []float32 { return e.vectors[i*e.dim : (i+1)*e.dim : (i+1)*e.dim] }

// writeEmbeddings stores every node's embedding, one part per shard.
func (b *build) writeEmbeddings(ctx context.Context, g *train.Graph, e embeddings) error {
	stats := &b.doc.Graph
	stats.NoText, stats.FromNeighbours = 0, 0
	for _, s := range e.status {
		if s == embedding.NoText {
			stats.NoText++
		}
	}
	if b.doc.Settings.MissingText == fit.Neighbours {
		stats.FromNeighbours = e.fillFromNeighbours(g)
	}
	if stats.NoText > 0 {
		b.resources.Log.Info("nodes have no text, or none that the encoder knows", "nodes", stats.NoText,
			"embedding_from_neighbours", stats.FromNeighbours)
	}
	b.resources.Progress.Stage("write embeddings", int64(g.Len()))
	b.doc.Embeddings = nil
	for shard, nodes := range b.corpus.byShard() {
		key := b.key(fmt.Sprintf("embeddings/part-%05d.parquet", shard))
		info, err := embedding.WriteParquet(ctx, b.Store, key, b.doc.Settings.Stored.Type, b.records(nodes, g.IDs, e))
		if err != nil {
			return err
		}
		b.doc.Embeddings = append(b.doc.Embeddings, Part{Key: key, Shard: shard, Rows: info.Rows,
			Bytes: info.Bytes, CRC32C: info.CRC32C})
	}
	return nil
}

func (b *build) records(nodes []int32, ids []string, e embeddings) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		for _, i := range nodes {
			b.resources.Progress.Add(1)
			meta := b.corpus.meta[i]
			r := embedding.Record{NodeID: ids[i], Generation: b.doc.Generation, Space: b.doc.SpaceBefore(),
				Status: e.status[i], EventTime: meta.eventTime, Shard: int(meta.shard), Seq: meta.seq}
			if r.Status != embedding.NoText {
				r.Vector = e.row(int(i))
			}
			if !yield(b.doc.Settings.Stored.Narrow(r), nil) {
				return
			}
		}
	}
}
