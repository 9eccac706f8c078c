package training

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/build/behaviour"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/vectors"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// Stats is what encoder leaves for the generation's document.
type Stats struct {
	generation.EncoderStats
	Space    int64  `json:"space,omitempty"`
	TextOnly string `json:"text_only,omitempty"`
	// Nodes are those of the sample that it was trained on.
	Nodes int `json:"nodes"`
	// Instances are the run of positions of those of them that are instances.
	Instances PositionRun `json:"instances"`
	// TextDim is the dimension of the projected texts.
	TextDim int `json:"text_dim"`
	// GPUMath are the modes other than float32 in which GPUs multiplied for it: several if it was resumed in another.
	GPUMath []compute.Math `json:"gpu_math,omitempty"`
	// Vectors are what the items' own vectors weigh.
	Vectors []fit.VectorStats `json:"vectors,omitempty"`
}

// TrainEncoder trains the encoder on the sample. Task 0 leads and stores the encoder; the others help.
//
//	sampled  section p: the nodes of partition p that are in the sample, by their numbers in it, u32
func TrainEncoder(ctx context.Context, t *work.Task) error {
	if t.Partition > 0 {
		return helpTraining(ctx, t)
	}
	s, err := takeSample(ctx, t)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // temporary files
	if err := putSampled(ctx, t, s); err != nil {
		return err
	}
	linked, err := graph.LinkTotals(ctx, t.Build)
	if err != nil {
		return err
	}
	if err := s.loadViews(ctx, t); err != nil {
		return err
	}
	s.OrderedLinks = min(1, float32(linked.Ordered)/float32(max(1, linked.Links)))
	r := t.TaskResources()
	var space int64
	s.Average = t.Doc.AveragedWith != 0
	if t.Doc.KeepSpaceOf != 0 {
		s.OpenParent = func(ctx context.Context) (p *fit.Parent, err error) {
			p, space, err = generation.OpenParent(ctx, t.Store, t.Doc, r)
			return p, err
		}
	}
	if err := storeMath(ctx, t); err != nil {
		return err
	}
	journal := &journal{Store: t.Store, Prefix: work.Folder(t.Task), Every: t.CheckpointEvery, Now: r.Now, Log: r.Log}
	trained, why, err := leadTraining(ctx, t, s.Inputs, journal)
	if err != nil {
		return err
	}
	defer train.Close(trained.Encoder) //nolint:errcheck // it is stored by then, whatever a device says
	if !trained.Aligned {
		space = 0
	}
	if why != "" && linked.Instances == 0 {
		why = whyTextOnly(linked, t.Doc.Settings)
	}
	if trained.Curve != nil {
		if err := drawCurve(ctx, t.Store, t.Generation, *trained.Curve); err != nil {
			return err
		}
	}
	modes, err := mathSoFar(ctx, t)
	if err != nil {
		return err
	}
	c, err := storeEncoder(ctx, t, trained, s, space)
	if err != nil {
		return err
	}
	t.Stats = Stats{EncoderStats: generation.EncoderStats{Kind: c.Kind, Dim: c.Dim, Bytes: c.Size(),
		Metrics: c.Metrics}, Space: c.Space, TextOnly: why, Nodes: len(s.Positions),
		Instances: s.instances, TextDim: s.Dim, GPUMath: modes, Vectors: trained.Vectors}
	return journal.Remove(ctx)
}

// loadViews reads the views of items that the plan has beside the text.
func (s *Sample) loadViews(ctx context.Context, t *work.Task) (err error) {
	if t.Plan.Behaviour {
		if s.Behaviour, s.Directions, err = behaviour.Load(ctx, t); err != nil {
			return err
		}
	}
	if t.Plan.Vectors {
		s.Vectors, err = vectors.Load(ctx, t)
	}
	return err
}

// storeEncoder stores a trained encoder, and lists its objects among the task's outputs.
func storeEncoder(ctx context.Context, t *work.Task, trained *fit.Trained, s *Sample, space int64) (
	c encoders.Config, err error) {
	prefix := t.ArtifactKey(generation.EncoderName)
	c, err = encoders.Save(ctx, t.Store, prefix, trained.Encoder, encoders.Meta{Vectorizer: s.Vectorizer,
		Projection: s.Projection, Seed: t.Doc.Settings.Seed, Space: space, Metrics: trained.Metrics,
		Tensors: trained.Matcher.Tensors()})
	if err != nil {
		return c, explain(err)
	}
	for info, err := range t.Store.List(ctx, prefix+"/", "") {
		if err != nil {
			return c, err
		}
		ref, err := sink.RefOf(ctx, t.Store, info.Key)
		if err != nil {
			return c, err
		}
		name := strings.TrimPrefix(info.Key, prefix+"/")
		t.Outputs[name] = work.Output{Key: ref.Key, Bytes: ref.Bytes, Checksum: ref.Checksum}
	}
	return c, nil
}

// loadEncoder reads the trained encoder. Close it after use.
func loadEncoder(ctx context.Context, b *work.Build) (train.Encoder, error) {
	from, err := b.OutputsOf(ctx, stages.Encoder, 0)
	if err != nil {
		return nil, err
	}
	for _, o := range from.Outputs {
		if err := sink.Verify(ctx, b.Store, o.Ref()); err != nil {
			return nil, from.Explain(err)
		}
	}
	v, err := vocabulary.LoadVectorizer(ctx, b)
	if err != nil {
		return nil, err
	}
	q, err := vocabulary.LoadProjection(ctx, b)
	if err != nil {
		return nil, err
	}
	e, _, err := encoders.Load(ctx, b.Store, b.ArtifactKey(generation.EncoderName), v, q, b.Device)
	return e, from.Explain(err)
}

// Describe notes the encoder.
func Describe(ctx context.Context, b *work.Build, doc *generation.Doc) error {
	trained, err := work.StatsOf[Stats](ctx, b, stages.Encoder, 0)
	if err != nil {
		return err
	}
	doc.Encoder, doc.TextOnly, doc.GPUMath = trained.EncoderStats, trained.TextOnly, nil
	doc.Space = cmp.Or(trained.Space, doc.Generation)
	AddMath(doc, trained.GPUMath...)
	if b.Plan.Behaviour && trained.TextOnly == "" {
		var view generation.BehaviourStats
		view, err = work.StatsOf[generation.BehaviourStats](ctx, b, stages.Behaviour, 0)
		doc.Graph.Orders.Behaviour = &view
	}
	if b.Plan.Vectors {
		err = errors.Join(err, describeVectors(ctx, b, doc, trained.Vectors))
	}
	return err
}

// describeVectors notes what every vector weighs, those with too few rows included.
func describeVectors(ctx context.Context, b *work.Build, doc *generation.Doc, weighed []fit.VectorStats) error {
	views, err := vectors.Views(ctx, b)
	for _, v := range views {
		s := fit.VectorStats{Name: v.Name, Length: v.Length}
		if k := slices.IndexFunc(weighed, func(w fit.VectorStats) bool { return w.Name == v.Name }); k >= 0 {
			s = weighed[k]
		}
		doc.Graph.Vectors = append(doc.Graph.Vectors, s)
	}
	return err
}

// SharedEncoder returns the trained encoder until done is called.
func SharedEncoder(ctx context.Context, b *work.Build) (e train.Encoder, done func(), err error) {
	from, err := b.OutputsOf(ctx, stages.Encoder, 0)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for name, o := range from.Outputs {
		if from.IsArtifact(o) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, from.Damaged(errors.New("it names no file of the encoder"))
	}
	return work.Share(ctx, b, stages.Encoder, slices.Min(names), func() (train.Encoder, error) {
		return loadEncoder(ctx,
			b)
	})
}
