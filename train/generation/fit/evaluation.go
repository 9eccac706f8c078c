package fit

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

// Embed returns the embeddings of all texts, a row each.
func Embed(ctx context.Context, e train.Encoder, t *Texts, p ambient.Progress) ([]float32, error) {
	return EmbedNodes(ctx, e, nil, t, p)
}

// EmbedNodes is Embed for the texts of nodes with these ids, with all that the encoder knows of them.
func EmbedNodes(ctx context.Context, e train.Encoder, ids []string, t *Texts, p ambient.Progress) ([]float32, error) {
	p.Stage("encode all nodes", int64(t.Len()))
	return embed(ctx, e, ids, t, p)
}

func embed(ctx context.Context, e train.Encoder, ids []string, t *Texts, p ambient.Progress) ([]float32, error) {
	dim := e.Dim()
	out := make([]float32, t.Len()*dim)
	return out, t.blocks(ctx, p, func(lo int, texts []string) error {
		hi := lo + len(texts)
		if ids == nil {
			return e.Encode(texts, out[lo*dim:hi*dim])
		}
		return train.EncodeItems(e, ids[lo:hi], texts, nil, out[lo*dim:hi*dim])
	})
}

// EmbedText returns the embeddings of the text-only baseline: the first dim numbers of the
// projections, normalized.
func EmbedText(p *Projected, dim, workers int) ([]float32, error) {
	n := p.spool.len()
	vectors := make([]float32, n*dim)
	if err := p.rows(0, n, dim, vectors, workers); err != nil {
		return nil, err
	}
	numeric.NormalizeRows(vectors, dim)
	return vectors, nil
}

// Direction normalizes a vector, and reports whether it has a direction.
func Direction(v []float32) bool {
	numeric.Normalize(v)
	return slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
}

// Evaluation is how well one encoder's embeddings predict what they have not seen: held-out links,
// and the nodes' classes.
type Evaluation struct {
	Encoder string            `json:"encoder"`
	Dim     int               `json:"dim"`
	Links   *eval.LinkMetrics `json:"links,omitempty"`
	Probes  []ProbeResult     `json:"probes,omitempty"`
	// ByDegree has the same figures by the degree of the nodes in the known graph: of the end of a
	// hidden edge that was asked about, and of the node whose class was asked for.
	ByDegree []DegreeFigures `json:"by_degree,omitempty"`
	// Isolated is how well a probe trained on the nodes with edges tells the classes of those without
	// any; nil where there are too few.
	Isolated *eval.ClassMetrics `json:"isolated,omitempty"`
	// Unseen has the figures of nodes hidden from everything with all their edges; nil if none were.
	Unseen *UnseenFigures `json:"unseen,omitempty"`
}

// ProbeResult is a class probe trained on a share of the labelled nodes.
type ProbeResult struct {
	Rate float64 `json:"rate"`
	eval.ProbeMetrics
}

// DegreeFigures are those of the nodes in a bucket of degrees. A figure with fewer than eval.MinCases
// cases is nil, or left out.
type DegreeFigures struct {
	Degree string `json:"degree"`
	// Edges is the number of hidden edges whose query is in the bucket.
	Edges int               `json:"edges"`
	Links *eval.LinkMetrics `json:"links,omitempty"`
	// Labelled is the number of nodes of the bucket that have a class.
	Labelled int          `json:"labelled"`
	Classes  []RateFigure `json:"classes,omitempty"`
}

// RateFigure is the accuracy of a probe trained on a share of the labelled nodes.
type RateFigure struct {
	Rate float64 `json:"rate"`
	eval.ClassMetrics
}

// UnseenFigures are those of nodes that were hidden with all their edges, and embedded afterwards. A
// figure with fewer than eval.MinCases cases is nil.
type UnseenFigures struct {
	Nodes int `json:"nodes"`
	// Edges is the number of links from unseen nodes to others.
	Edges int               `json:"edges"`
	Links *eval.LinkMetrics `json:"links,omitempty"`
	// Labelled is the number of unseen nodes that have a class, Classes the accuracy on them of a
	// probe trained on the other nodes.
	Labelled int                `json:"labelled"`
	Classes  *eval.ClassMetrics `json:"classes,omitempty"`
}

// Exam is what embeddings are evaluated on.
type Exam struct {
	Known  *train.Graph
	Hidden []eval.Edge
	// Left are hidden edges that are not asked about: an end of them has no embedding.
	Left    []eval.Edge
	Classes int // how many different classes the nodes have
}

// Evaluate evaluates the embeddings of all nodes, n × dim, which an encoder of a kind has made.
func (x Exam) Evaluate(kind string, vectors []float32, dim int, s Settings, workers int,
	log *slog.Logger) (Evaluation, error) {
	out := Evaluation{Encoder: kind, Dim: dim}
	bucket := eval.ByDegree(x.Known.Neighbours)
	for _, name := range eval.DegreeBuckets {
		out.ByDegree = append(out.ByDegree, DegreeFigures{Degree: name})
	}
	if len(x.Hidden) > 0 {
		scores, err := eval.ScoreLinks(vectors, dim, x.Known, x.Hidden, eval.LinkOptions{Seed: s.EvalSeed,
			Workers: workers})
		switch {
		case errors.Is(err, eval.ErrNoLinks): // every node is linked to all others
			log.Warn("link figures left out", "error", err)
		case err != nil:
			return out, err
		default:
			links := scores.Metrics()
			out.Links = &links
			for k := range out.ByDegree {
				b := &out.ByDegree[k]
				some := scores.Where(bucket, k)
				b.Edges, b.Links = len(some), enoughLinks(some)
			}
		}
	}
	if x.Classes < 2 {
		return out, nil
	}
	prober, err := eval.NewProber(vectors, dim, x.Known.Classes)
	if err != nil {
		return out, err
	}
	for i, class := range x.Known.Classes {
		if class != "" {
			out.ByDegree[bucket[i]].Labelled++
		}
	}
	for _, rate := range s.ProbeRates {
		m, parts, err := prober.Probe(bucket, len(out.ByDegree), eval.ProbeOptions{Fraction: rate, Seed: s.EvalSeed,
			Workers: workers})
		if err != nil {
			log.Warn("class probe left out", "rate", rate, "error", err)
			continue
		}
		out.Probes = append(out.Probes, ProbeResult{rate, m})
		for k := range out.ByDegree {
			if b := &out.ByDegree[k]; b.Labelled >= eval.MinCases {
				b.Classes = append(b.Classes, RateFigure{rate, parts[k]})
			}
		}
	}
	isolated, others := eval.Isolated(x.Known.Neighbours, slices.Concat(x.Hidden, x.Left))
	out.Isolated = probeUnseen(prober, others, isolated, s, workers, log)
	return out, nil
}

// EvaluateUnseen evaluates the embeddings of all nodes, n × dim, on links from unseen to seen nodes
// and on the classes of the unseen. Known has the seen nodes' links only.
func (x Exam) EvaluateUnseen(unseen, seen []int32, vectors []float32, dim int, s Settings, workers int,
	log *slog.Logger) (*UnseenFigures, error) {
	out := &UnseenFigures{Nodes: len(unseen), Edges: len(x.Hidden)}
	if len(x.Hidden) >= eval.MinCases {
		scores, err := eval.ScoreLinks(vectors, dim, x.Known, x.Hidden, eval.LinkOptions{Seed: s.EvalSeed,
			FromSource: true, Workers: workers})
		if err != nil {
			return nil, err
		}
		out.Links = enoughLinks(scores)
	}
	for _, i := range unseen {
		if x.Known.Classes[i] != "" {
			out.Labelled++
		}
	}
	if x.Classes < 2 || out.Labelled < eval.MinCases {
		return out, nil
	}
	prober, err := eval.NewProber(vectors, dim, x.Known.Classes)
	if err != nil {
		return nil, err
	}
	out.Classes = probeUnseen(prober, seen, unseen, s, workers, log)
	return out, nil
}

// enoughLinks returns the metrics of the scores, nil if there are too few.
func enoughLinks(scores eval.LinkScores) *eval.LinkMetrics {
	if len(scores) < eval.MinCases {
		return nil
	}
	m := scores.Metrics()
	return &m
}

// probeUnseen asks a probe that is trained on some nodes about others; nil for too few.
func probeUnseen(p *eval.Prober, train, test []int32, s Settings, workers int,
	log *slog.Logger) *eval.ClassMetrics {
	m, err := p.ProbeUnseen(train, test, s.EvalSeed, workers)
	switch {
	case m.Nodes < eval.MinCases:
		return nil
	case err != nil:
		log.Warn("class probe left out", "error", err)
		return nil
	}
	return &m
}
