package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/generation"
)

// datasetGroupBytes is the raw size of the training set's row groups, as in a build in one process.
const datasetGroupBytes = 2 << 20

// dataset writes the training set of a partition: its instances, in ascending order of ids.
func (t *task) dataset(ctx context.Context) error {
	v, err := t.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	tree, err := t.loadTree(ctx)
	if err != nil {
		return err
	}
	p, err := t.partition(ctx, true)
	if err != nil {
		return err
	}
	psi := &counted{model: v}
	if err := t.counted(ctx, v, t.Partition, func(_ int, c *counted) error {
		psi.from, psi.records = c.from, append(psi.records, c.records...)
		return nil
	}); err != nil {
		return err
	}
	key := t.final(fmt.Sprintf("dataset/part-%05d.parquet", t.Partition))
	info, err := rows.Write(ctx, t.Store, key, rows.WriteOptions{GroupBytes: datasetGroupBytes},
		func(yield func(rows.Row, error) bool) {
			for _, i := range p.byID {
				n := &p.nodes[i]
				known := ascending(n.to, n.hidden, false)
				if len(known) == 0 || len(known) > t.doc.Settings.MaxDegree {
					continue
				}
				f := psi.features(i, sparse.Vector{})
				if err := psi.err(); err != nil {
					yield(rows.Row{}, err)
					return
				}
				r := rows.Row{NodeID: string(n.id), Text: p.texts[i], Class: string(n.class), FeatureIndices: f.Index,
					FeatureValues: f.Value, Generation: t.plan.Generation, EventTime: n.time}
				for k, l := range n.labels {
					if n.to[k] >= 0 && !n.hidden[k] {
						r.Labels = append(r.Labels, l)
					}
				}
				r.Targets, r.TargetCounts = labeltree.Targets(tree, known)
				if !yield(r, nil) {
					return
				}
			}
		})
	if err != nil {
		return err
	}
	t.outputs["part"] = output{Key: key, Bytes: info.Bytes, CRC32C: info.CRC32C, Rows: info.Rows, Shard: t.Partition}
	return nil
}

// partition is what is known of a partition's nodes, in memory.
type partition struct {
	nodes []member
	texts []string
	byID  []int // numbers of the nodes in ascending order of ids
}

type member struct {
	about
	labels []string
	to     []int32
	hidden []bool
}

// nodesOf returns the nodes of the partition, without texts.
func (t *task) nodesOf(ctx context.Context) (*partition, error) {
	p := &partition{}
	if err := t.about(ctx, t.Partition, func(i int, a about) error {
		p.nodes, p.byID = append(p.nodes, member{about: a}), append(p.byID, i)
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(p.byID, func(a, b int) int { return strings.Compare(string(p.nodes[a].id), string(p.nodes[b].id)) })
	return p, nil
}

func (t *task) partition(ctx context.Context, links bool) (*partition, error) {
	p, err := t.nodesOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.texts(ctx, t.Partition, func(_ int, texts []string) error {
		p.texts = append(p.texts, texts...)
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	if !links {
		return p, nil
	}
	if err := t.links(ctx, t.Partition, func(i int, to []int32, hidden []bool) error {
		p.nodes[i].to, p.nodes[i].hidden = to, hidden
		return nil
	}); err != nil {
		return nil, err
	}
	return p, t.eachBlock(ctx, Number, "labels", t.Partition, func(d *decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			n := &p.nodes[i]
			for range d.uvarint() {
				if n.labels = append(n.labels, string(d.string())); d.err != nil {
					return d.err
				}
			}
			if d.err == nil && len(n.labels) != len(n.to) {
				d.err = errShort
			}
		}
		return nil
	})
}

// encoderStats is what encoder leaves for the generation's document.
type encoderStats struct {
	generation.EncoderStats
	Space    int64  `json:"space,omitempty"`
	TextOnly string `json:"text_only,omitempty"`
	// Nodes are those of the sample that it was trained on.
	Nodes int `json:"nodes"`
	// Instances are the run of positions of those of them that are instances.
	Instances positionRun `json:"instances"`
	// TextDim is the dimension of the projected texts.
	TextDim int `json:"text_dim"`
	// GPUMath are the modes other than float32 in which GPUs multiplied for it: several if it was resumed in another.
	GPUMath []compute.Math `json:"gpu_math,omitempty"`
}

// encoder trains the encoder on the sample. Task 0 leads and stores the encoder; the others help.
//
//	sampled  section p: the nodes of partition p that are in the sample, by their numbers in it, u32
func (t *task) encoder(ctx context.Context) error {
	if t.Partition > 0 {
		return t.help(ctx)
	}
	s, err := t.sample(ctx)
	if err != nil {
		return err
	}
	defer s.close() //nolint:errcheck // temporary files
	if err := t.putSampled(ctx, s); err != nil {
		return err
	}
	linked, err := t.linked(ctx)
	if err != nil {
		return err
	}
	settings, r := t.doc.Settings, t.resources()
	var space int64
	if t.doc.KeepSpaceOf != 0 {
		s.Before = func(ctx context.Context) (before train.Encoder, err error) {
			before, space, err = generation.Before(ctx, t.Store, t.doc, r)
			return before, err
		}
	}
	if err := t.noteMath(ctx); err != nil {
		return err
	}
	journal := &Journal{Store: t.Store, Prefix: folder(t.Task), Every: t.CheckpointEvery, Now: r.Now, Log: r.Log}
	trained, why, err := t.lead(ctx, s.Inputs, journal)
	if err != nil {
		return err
	}
	defer train.Close(trained.Encoder) //nolint:errcheck // it is stored by then, whatever a device says
	if !trained.Aligned {
		space = 0
	}
	if why != "" && linked.Instances == 0 {
		why = whyTextOnly(linked, settings)
	}
	if trained.Curve != nil {
		if err := drawCurve(ctx, t.Store, t.Generation, *trained.Curve); err != nil {
			return err
		}
	}
	modes, err := t.mathSoFar(ctx)
	if err != nil {
		return err
	}
	prefix := t.final(generation.EncoderName)
	c, err := encoders.Save(ctx, t.Store, prefix, trained.Encoder, encoders.Meta{Vectorizer: s.Vectorizer,
		Projection: s.Projection, Seed: settings.Seed, Space: space, Metrics: trained.Metrics,
		Tensors: trained.Matcher.Tensors()})
	if err != nil {
		return explainDiverged(err)
	}
	for info, err := range t.Store.List(ctx, prefix+"/", "") {
		if err != nil {
			return err
		}
		ref, err := sink.RefOf(ctx, t.Store, info.Key)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(info.Key, prefix+"/")
		t.outputs[name] = output{Key: ref.Key, Bytes: ref.Bytes, CRC32C: ref.CRC32C}
	}
	t.stats = encoderStats{EncoderStats: generation.EncoderStats{Kind: c.Kind, Dim: c.Dim, Bytes: c.Size(),
		Metrics: c.Metrics}, Space: c.Space, TextOnly: why, Nodes: len(s.positions),
		Instances: s.instances, TextDim: s.Dim, GPUMath: modes}
	return journal.Remove(ctx)
}

// math is how the device multiplies, which figures depend on: "" for float32, and where no transformer runs.
func (t *task) math() compute.Math {
	m := compute.MathOf(devices.OrCPU(t.Device))
	if m == compute.Float32 || t.doc.Settings.Encoder != bert.Kind {
		return ""
	}
	return m
}

// noteMath leaves an object that says how the device multiplies, for a training that is resumed in another mode.
func (t *task) noteMath(ctx context.Context) error {
	m := t.math()
	if m == "" {
		return nil
	}
	return sink.PutBytes(ctx, t.Store, folder(t.Task)+"math/"+string(m), []byte(m))
}

// mathSoFar returns the modes in which devices have multiplied for this training.
func (t *task) mathSoFar(ctx context.Context) (modes []compute.Math, err error) {
	prefix := folder(t.Task) + "math/"
	for info, err := range t.Store.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		modes = append(modes, compute.Math(strings.TrimPrefix(info.Key, prefix)))
	}
	return modes, nil
}

// loadEncoder reads the trained encoder. Close it after use.
func (b *build) loadEncoder(ctx context.Context) (train.Encoder, error) {
	from, err := b.from(ctx, Encoder, 0)
	if err != nil {
		return nil, err
	}
	for _, o := range from.Outputs {
		if err := sink.Verify(ctx, b.Store, o.ref()); err != nil {
			return nil, from.explain(err)
		}
	}
	v, err := b.loadVectorizer(ctx)
	if err != nil {
		return nil, err
	}
	q, err := b.loadProjection(ctx)
	if err != nil {
		return nil, err
	}
	e, _, err := encoders.Load(ctx, b.Store, b.final(generation.EncoderName), v, q, b.Device)
	return e, from.explain(err)
}
