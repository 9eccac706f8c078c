package embeddings

import (
	"context"
	"errors"
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/training"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

// evaluateStats is what evaluate leaves for the generation's document.
type evaluateStats struct {
	Evaluation []fit.Evaluation `json:"evaluation"`
	Hidden     int              `json:"hidden"`
	Whole      bool             `json:"whole"` // the sample is the graph
}

// Evaluate asks text alone and the encoder about hidden links and classes of the sample. It holds the sample's links,
// and its embeddings of one of the two.
func Evaluate(ctx context.Context, t *work.Task) error {
	trained, err := work.StatsOf[training.Stats](ctx, t.Build, stages.Encoder, 0)
	if err != nil {
		return err
	}
	x, s, err := training.ReopenSample(ctx, t, trained.Instances)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // temporary files
	settings, log := t.Doc.Settings, t.TaskResources().Log
	dim := trained.TextDim
	texts := sampledTexts
	if t.Plan.Averaged {
		texts = freshTexts
	}
	vectors, err := texts(ctx, t, x, s, dim)
	if err != nil {
		return err
	}
	exam, err := examOf(s.Texts, vectors, dim, s.Known, s.Hidden)
	if err != nil {
		return err
	}
	text, err := exam.Evaluate(linear.LSAKind, vectors, dim, settings, t.Workers, log)
	if err != nil {
		return err
	}
	out := evaluateStats{Evaluation: []fit.Evaluation{text}, Hidden: len(s.Hidden), Whole: s.Whole}
	if trained.TextOnly == "" {
		vectors, err := sampledVectors(ctx, t, x, s, trained.Dim)
		if err != nil {
			return err
		}
		own, err := exam.Evaluate(trained.Kind, vectors, trained.Dim, settings, t.Workers, log)
		if err != nil {
			return err
		}
		out.Evaluation = append(out.Evaluation, own)
	}
	t.Stats = out
	return nil
}

// sampledTexts returns the embeddings of text alone, of projections as they are stored.
func sampledTexts(ctx context.Context, t *work.Task, x graph.Numbering, s *training.Sample, dim int) ([]float32,
	error) {
	vectors := make([]float32, len(s.Positions)*dim)
	for p := range t.Plan.Partitions {
		texts, err := vocabulary.OpenProjected(ctx, t.Build, p, dim)
		if err != nil {
			return nil, err
		}
		err = s.VisitPartition(x, p, func(i, k int) error {
			row, err := texts.RowOf(i)
			copy(vectors[k*dim:], row)
			return err
		})
		if err = errors.Join(err, texts.Close(), ctx.Err()); err != nil {
			return nil, err
		}
	}
	numeric.NormalizeRows(vectors, dim)
	return vectors, nil
}

// freshTexts returns the embeddings of text alone by a projection that has nothing of earlier generations. Text alone
// would else age with the encoder that is compared with it.
func freshTexts(ctx context.Context, t *work.Task, x graph.Numbering, s *training.Sample, dim int) ([]float32,
	error) {
	v, err := vocabulary.LoadVectorizer(ctx, t.Build)
	if err != nil {
		return nil, err
	}
	q, err := vocabulary.LoadFresh(ctx, t.Build)
	if err != nil {
		return nil, err
	}
	if q, err = q.Truncate(min(dim, q.Dim())); err != nil {
		return nil, err
	}
	vectors := make([]float32, len(s.Positions)*dim)
	for p := range t.Plan.Partitions {
		k, n := s.RunOf(x, p)
		end := k + n
		err := vocabulary.EachCounts(ctx, t.Build, v, p, func(lo int, c *vocabulary.TextCounts) error {
			first := k
			for k < end && int(s.Positions[k])-x.Base[p] < lo+len(c.Records) {
				k++
			}
			parallel.ForEach(k-first, 64, t.Workers, func(_, _, a, b int) {
				var psi sparse.Vector
				for i := first + a; i < first+b; i++ {
					psi = c.Features(int(s.Positions[i])-x.Base[p]-lo, psi)
					q.Apply(psi, vectors[i*dim:])
				}
			})
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	numeric.NormalizeRows(vectors, dim)
	return vectors, nil
}

// sampledVectors returns the embeddings that encode has left of the sample.
func sampledVectors(ctx context.Context, t *work.Task, x graph.Numbering, s *training.Sample, dim int) ([]float32,
	error) {
	vectors := make([]float32, len(s.Positions)*dim)
	for p := range t.Plan.Partitions {
		first, n := s.RunOf(x, p)
		rows := vectors[first*dim : (first+n)*dim]
		from, err := t.OutputsOf(ctx, stages.Encode, p)
		if err != nil {
			return nil, err
		}
		in, err := from.OpenSections(ctx, "sampled")
		if err != nil {
			return nil, err
		}
		for k := range in.Len() {
			b, err := in.ReadSection(k)
			if err == nil && len(b)/4 > len(rows) {
				err = from.Explain(fmt.Errorf("%w: more embeddings than there are nodes", sections.ErrShort))
			}
			if err != nil {
				return nil, errors.Join(err, in.Close())
			}
			sections.ReadFloats(b, rows[:len(b)/4])
			rows = rows[len(b)/4:]
		}
		if err := errors.Join(in.Close(), ctx.Err()); err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			return nil, from.Explain(fmt.Errorf("%w: %d numbers of the sample's embeddings are missing",
				sections.ErrShort,
				len(rows)))
		}
	}
	return vectors, nil
}

// DescribeQuality notes the evaluation, and how the generation compares with the one before.
func DescribeQuality(ctx context.Context, b *work.Build, doc *generation.Doc) error {
	judged, err := work.StatsOf[evaluateStats](ctx, b, stages.Evaluate, 0)
	if err != nil {
		return err
	}
	doc.Evaluation, doc.Shortfalls = judged.Evaluation, fit.Shortfalls(judged.Evaluation)
	doc.Declines = generation.DeclinesOf(doc.Summary(), doc.History)
	if judged.Whole {
		doc.Graph.Hidden = judged.Hidden
	}
	if !b.Plan.Parent {
		return nil
	}
	m, err := work.StatsOf[parentStats[generation.MappingStats]](ctx, b, stages.Mapping, 0)
	if err != nil {
		return err
	}
	c, err := work.StatsOf[parentStats[generation.OverlapStats]](ctx, b, stages.Compare, 0)
	if err != nil {
		return err
	}
	doc.Mapping, doc.Overlap = m.Stats, c.Stats
	return nil
}
