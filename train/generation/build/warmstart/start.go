package warmstart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/parallel"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// Limits of warm starts, beyond which a generation is built from scratch.
const (
	// warmNew is the share of the nodes that the parent did not have.
	warmNew = 0.2
	// minUnknownTexts is how many changed texts tell what share of n-grams is unknown.
	minUnknownTexts = 200
	// renewShare: to renew a tree takes the features of all labels in memory. They may take limit/renewShare.
	renewShare = 2
)

// Decision is what start says: what has changed since the parent, or why the build is one from scratch all the same.
type Decision struct {
	Cold string `json:"cold,omitempty"`
	generation.WarmStats
}

// Start decides, now that the nodes are known, whether the parent is near enough to start from. If it is, start copies
// what later stages take of it, so that nothing that becomes of the parent changes the build. It holds 24 bytes a node
// and what it copies of the parent's vectorizer in memory.
//
//	from        section p: the parent's label of each node of partition p, -1 for none, int32
//	vectorizer, projection, tree, encoder/*  the parent's
func Start(ctx context.Context, t *work.Task) error {
	parent, err := generation.Load(ctx, t.Store, t.Doc.WarmOf)
	var s Decision
	if err == nil {
		s, err = findChanges(ctx, t, parent)
	}
	if errors.Is(err, generation.ErrNone) || errors.Is(err, generation.ErrDamaged) || generation.IsDamage(err) {
		s, err = Decision{Cold: fmt.Sprintf("the generation before is gone or damaged: %v", err)}, nil
	}
	if err != nil {
		return err
	}
	if s.Cold != "" {
		clear(t.Outputs)
		generation.LogCold(t.TaskResources().Log, t.Doc.WarmOf, s.Cold)
	}
	t.Stats = s
	return nil
}

// findChanges finds the nodes of the cut among the labels of the parent, and copies what a warm start takes of it.
func findChanges(ctx context.Context, t *work.Task, parent *generation.Doc) (s Decision, err error) {
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return s, err
	}
	needed := int64(x.Nodes()) * int64(t.Doc.Settings.EmbeddingDim) * 4
	if t.MemoryLimit > 0 && needed > t.MemoryLimit/renewShare {
		return Decision{Cold: "to renew the label tree takes more memory than featurize.memory_limit allows"}, nil
	}
	from, err := parentLabels(ctx, t, x, parent)
	if err != nil {
		return s, err
	}
	changed := make([]bool, x.Nodes())
	for p := range t.Plan.Partitions {
		if err := graph.EachNode(ctx, t.Build, p, func(i int, a graph.Node) error {
			i += x.Base[p]
			if from[i] < 0 {
				s.New++
			}
			if changed[i] = from[i] < 0 || a.Seq > parent.Cut[a.Shard]; changed[i] {
				s.Changed++
			}
			return nil
		}); err != nil {
			return s, err
		}
	}
	if share := float64(s.New) / float64(x.Nodes()); share > warmNew {
		return Decision{Cold: fmt.Sprintf("%.0f %% of the nodes are new, more than %.0f %%", 100*share,
			100*warmNew)}, nil
	}
	refs, err := parent.CopyParts(ctx, t.Store, work.Folder(t.Task), func(name string) bool {
		return slices.Contains([]string{generation.VectorizerName, generation.ProjectionName, generation.TreeName},
			name) || strings.HasPrefix(name, generation.EncoderName+"/")
	})
	if err != nil {
		return s, err
	}
	for name, ref := range refs {
		t.Outputs[name] = work.Output{Key: ref.Key, Bytes: ref.Bytes, Checksum: ref.Checksum}
	}
	if s.UnknownShare, err = unknownShare(ctx, t, x, changed); err != nil {
		return s, err
	}
	before := parent.Vectorizer.UnknownShare
	if most := t.Doc.WarmUnknown; most > 0 && s.Changed >= minUnknownTexts && s.UnknownShare > before+most {
		return Decision{Cold: fmt.Sprintf("the vocabulary lacks %.3f of the changed texts' n-grams, and %.3f of "+
			"those that it was fitted to", s.UnknownShare, before)}, nil
	}
	out := t.NewSections(t.Plan.Partitions)
	defer out.Close() //nolint:errcheck // a temporary file
	for p := range t.Plan.Partitions {
		if err := out.Add(p, sections.AppendInts(nil, from[x.Base[p]:x.Base[p+1]])); err != nil {
			return s, err
		}
	}
	return s, t.PutSections(ctx, "from", out)
}

// parentLabels returns the parent's label of each node, -1 for none.
func parentLabels(ctx context.Context, t *work.Task, x graph.Numbering, parent *generation.Doc) ([]int32, error) {
	find, err := graph.NodeFinder(ctx, t, x)
	if err != nil {
		return nil, err
	}
	shared, err := generation.SharedLabels(ctx, t.Store, parent, find)
	if err != nil {
		return nil, err
	}
	from := slices.Repeat([]int32{-1}, x.Nodes())
	for _, s := range shared {
		from[s.New] = s.Old
	}
	return from, nil
}

// unknownShare is the share of the n-grams of the changed texts that the parent's vectorizer does not know.
func unknownShare(ctx context.Context, t *work.Task, x graph.Numbering, changed []bool) (float64, error) {
	o := t.Outputs[generation.VectorizerName]
	v, err := work.ReadVerified(ctx, t.Store, o.Ref(), tfidf.Read)
	if err != nil {
		return 0, err
	}
	var count tfidf.NGramCount
	for p := range t.Plan.Partitions {
		if err := graph.EachTextBlock(ctx, t.Build, p, func(lo int, texts []string) error {
			parallel.ForEach(len(texts), 64, t.Workers, func(_, _, a, b int) {
				for i := a; i < b; i++ {
					if changed[x.Base[p]+lo+i] {
						_, n := v.TransformCounting(texts[i], sparse.Vector{})
						count.Add(n)
					}
				}
			})
			return ctx.Err()
		}); err != nil {
			return 0, err
		}
	}
	return tfidf.NGrams{Total: count.Total(), Unknown: count.Unknown()}.Share(), nil
}

// LoadDecision says whether the build starts from its parent, and what start has found changed.
func LoadDecision(ctx context.Context, b *work.Build) (bool, Decision, error) {
	if !b.Plan.Warm {
		return false, Decision{}, nil
	}
	s, err := work.StatsOf[Decision](ctx, b, stages.Start, 0)
	return err == nil && s.Cold == "", s, err
}

// KeepArtifact makes an artifact of the parent the generation's own.
func KeepArtifact(ctx context.Context, t *work.Task, name string) error {
	from, err := t.OutputsOf(ctx, stages.Start, 0)
	if err != nil {
		return err
	}
	o, err := from.Output(name)
	if err != nil {
		return err
	}
	key := t.ArtifactKey(name)
	if err := sink.CopyObject(ctx, t.Store, o.Ref(), t.Store, key); err != nil {
		return from.Explain(err)
	}
	o.Key = key
	t.Outputs[name] = o
	return nil
}
