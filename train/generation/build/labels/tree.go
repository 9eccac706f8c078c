package labels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/tfidf"
	"giantstream/internal/tempfile"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// trunkStats say how the tree goes on below its first cuts.
type trunkStats struct {
	Dim      int                `json:"dim"`
	Levels   []int              `json:"levels"`
	Branches []labeltree.Branch `json:"branches"`
}

// GrowTrunk makes the first cuts of the label tree. It copies the features to a temporary file, and holds 8 bytes a
// label in memory.
//
//	of  section p: branch of each label of partition p, int32
func GrowTrunk(ctx context.Context, t *work.Task) error {
	dim, x, err := loadShape(ctx, t.Build)
	if err != nil {
		return err
	}
	file, err := gatherRows(ctx, t, x, dim)
	if err != nil {
		return err
	}
	defer file.Close()
	// Each round reads all rows: what is read into is kept from block to block.
	var buffers sync.Pool
	read := func(lo, _ int, out []float32) error {
		b, _ := buffers.Get().(*[]byte)
		if b == nil {
			b = new([]byte)
		}
		defer buffers.Put(b)
		*b = slices.Grow((*b)[:0], 4*len(out))[:4*len(out)]
		if _, err := file.ReadAt(*b, int64(lo)*int64(dim)*4); err != nil {
			return err
		}
		sections.ReadFloats(*b, out)
		return nil
	}
	grown, err := labeltree.Grow(labeltree.Rows{Len: x.Nodes(), Dim: dim, Read: read},
		fit.TreeOptions(t.Doc.Settings, t.Workers), t.Plan.Partitions)
	if err != nil {
		return err
	}
	of := t.NewSections(t.Plan.Partitions)
	defer of.Close() //nolint:errcheck // a temporary file
	for p := range t.Plan.Partitions {
		for i := x.Base[p]; i < x.Base[p+1]; i++ {
			if err := of.Add(p, sections.AppendInts(nil, []int32{int32(grown.BranchOf(i))})); err != nil {
				return err
			}
		}
	}
	t.Stats = trunkStats{dim, grown.Levels, grown.Branches}
	return t.PutSections(ctx, "of", of)
}

// gatherRows copies the features of all labels to a temporary file.
func gatherRows(ctx context.Context, t *work.Task, x graph.Numbering, dim int) (_ *tempfile.File, err error) {
	file, err := tempfile.Create("giantstream-labels-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	for p := range t.Plan.Partitions {
		object, from, err := openRows(ctx, t.Build, p)
		if err != nil {
			return nil, err
		}
		n, err := io.Copy(file, sink.Sequential(object))
		if err == nil && n != int64(x.SizeOf(p))*int64(dim)*4 {
			err = from.Explain(fmt.Errorf("%w: %d bytes for %d labels", sections.ErrShort, n, x.SizeOf(p)))
		}
		if err = errors.Join(err, object.Close()); err != nil {
			return nil, err
		}
	}
	return file, nil
}

// branchStats sums up the cosines of a branch's labels to the centres of their leaves.
type branchStats struct {
	Labels int     `json:"labels"`
	Cosine float64 `json:"cosine"` // their sum
}

// DealRows deals the features of a partition's labels out to the branches. It holds them in memory.
//
//	features  section k: the features of those in branch k, ascending, float32
func DealRows(ctx context.Context, t *work.Task) error {
	top, err := work.StatsOf[trunkStats](ctx, t.Build, stages.Trunk, 0)
	if err != nil {
		return err
	}
	from, err := t.OutputsOf(ctx, stages.Trunk, 0)
	if err != nil {
		return err
	}
	of, err := from.ReadSection(ctx, "of", t.Partition)
	if err != nil {
		return err
	}
	object, rows, err := openRows(ctx, t.Build, t.Partition)
	if err != nil {
		return err
	}
	defer object.Close()
	out := t.NewSections(len(top.Branches))
	defer out.Close() //nolint:errcheck // a temporary file
	each := 4 * top.Dim
	buffer := make([]byte, graph.Block*each)
	branches := sections.ReadInts(of)
	for lo := 0; lo < len(branches); lo += graph.Block {
		some := branches[lo:min(lo+graph.Block, len(branches))]
		b := buffer[:len(some)*each]
		if n, err := object.ReadAt(b, int64(lo)*int64(each)); n < len(b) {
			return rows.Explain(err)
		}
		for i, k := range some {
			if int(k) >= len(top.Branches) {
				return from.Explain(fmt.Errorf("%w: a label is in branch %d of %d", sections.ErrShort, k,
					len(top.Branches)))
			}
			if k < 0 {
				continue
			}
			if err := out.Add(int(k), b[i*each:(i+1)*each]); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return t.PutSections(ctx, "features", out)
}

// readBranchRows reads the features of a branch's labels.
func readBranchRows(ctx context.Context, t *work.Task, branch int, rows []float32) error {
	for p := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Deal, p)
		if err != nil {
			return err
		}
		b, err := from.ReadSection(ctx, "features", branch)
		if err != nil {
			return err
		}
		if len(b)/4 > len(rows) || p == t.Plan.Partitions-1 && len(b)/4 < len(rows) {
			return from.Explain(fmt.Errorf("%w: the partitions have another number of labels of branch %d than trunk",
				sections.ErrShort, branch))
		}
		sections.ReadFloats(b, rows[:len(b)/4])
		rows = rows[len(b)/4:]
	}
	return nil
}

// DivideBranch divides a branch of the tree. It holds the features of its labels in memory.
//
//	leaves  leaf of each of its labels, int32
func DivideBranch(ctx context.Context, t *work.Task) error {
	top, err := work.StatsOf[trunkStats](ctx, t.Build, stages.Trunk, 0)
	if err != nil {
		return err
	}
	out := t.NewSections(1)
	defer out.Close() //nolint:errcheck // a temporary file
	if t.Partition < len(top.Branches) {
		b := top.Branches[t.Partition]
		features := make([]float32, b.Members*top.Dim)
		if err := readBranchRows(ctx, t, t.Partition, features); err != nil {
			return err
		}
		leaves, err := b.Leaves(top.Levels, features, top.Dim, fit.TreeOptions(t.Doc.Settings, t.Workers))
		if err != nil {
			return err
		}
		tree, err := labeltree.FromLeaves(top.Levels, leaves)
		if err != nil {
			return err
		}
		dense, err := labeltree.Dense(features, top.Dim)
		if err != nil {
			return err
		}
		t.Stats = branchStats{len(leaves), tree.MeanCosine(tree.Levels()-1, dense, t.Workers) * float64(len(leaves))}
		if err := out.Add(0, sections.AppendInts(nil, leaves)); err != nil {
			return err
		}
	} else {
		t.Stats = branchStats{}
	}
	return t.PutSections(ctx, "leaves", out)
}

// MakeTree stores the label tree: the branches joined.
func MakeTree(ctx context.Context, t *work.Task) error {
	tree, figures, err := joinBranches(ctx, t)
	if err != nil {
		return err
	}
	t.Stats = figures
	if err := t.Put(ctx, "tree", t.ArtifactKey(generation.TreeName), tree.Write); err != nil {
		return err
	}
	key := t.ArtifactKey(generation.LabelsName)
	if err := generation.WriteLabels(ctx, t.Store, key, func(yield func(string, error) bool) {
		for p := range t.Plan.Partitions {
			err := graph.EachNode(ctx, t.Build, p, func(_ int, a graph.Node) error {
				if !yield(string(a.ID), nil) {
					return errStop
				}
				return nil
			})
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}, tree); err != nil {
		return err
	}
	ref, err := sink.RefOf(ctx, t.Store, key)
	t.Outputs["labels"] = work.Output{Key: key, Bytes: ref.Bytes, Checksum: ref.Checksum}
	return err
}

// joinBranches joins the branches of the tree. It holds 12 bytes a label in memory.
func joinBranches(ctx context.Context, t *work.Task) (_ *labeltree.Tree, out generation.TreeStats, err error) {
	top, err := work.StatsOf[trunkStats](ctx, t.Build, stages.Trunk, 0)
	if err != nil {
		return nil, out, err
	}
	from, err := t.OutputsOf(ctx, stages.Trunk, 0)
	if err != nil {
		return nil, out, err
	}
	of, err := from.OpenSections(ctx, "of")
	if err != nil {
		return nil, out, err
	}
	defer of.Close()
	var leafOf []int32
	for p := range t.Plan.Partitions {
		b, err := of.ReadSection(p)
		if err != nil {
			return nil, out, err
		}
		leafOf = append(leafOf, sections.ReadInts(b)...)
	}
	leaves := make([][]int32, len(top.Branches))
	out.Labels, out.Levels = len(leafOf), top.Levels
	labels := 0
	for k := range leaves {
		done, err := t.OutputsOf(ctx, stages.Branch, k)
		if err != nil {
			return nil, out, err
		}
		b, err := done.ReadSection(ctx, "leaves", 0)
		if err != nil {
			return nil, out, err
		}
		leaves[k] = sections.ReadInts(b)
		s, err := work.StatsOf[branchStats](ctx, t.Build, stages.Branch, k)
		if err != nil {
			return nil, out, err
		}
		labels += s.Labels
		out.MeanCosine += s.Cosine
	}
	out.MeanCosine /= float64(max(1, labels))
	for i, k := range leafOf {
		if k < 0 {
			continue
		}
		if int(k) >= len(leaves) || len(leaves[k]) == 0 {
			return nil, out, from.Explain(fmt.Errorf("%w: label %d is in branch %d", sections.ErrShort, i, k))
		}
		leafOf[i], leaves[k] = leaves[k][0], leaves[k][1:]
	}
	tree, err := labeltree.FromLeaves(top.Levels, leafOf)
	return tree, out, err
}

// LoadTree reads the label tree, once for all tasks of this process.
func LoadTree(ctx context.Context, b *work.Build) (*labeltree.Tree, error) {
	return work.ShareArtifact(ctx, b, stages.Tree, "tree", labeltree.Read)
}

// Describe notes the vocabulary, the tree and the training set.
func Describe(ctx context.Context, b *work.Build, doc *generation.Doc) error {
	var err error
	if doc.Tree, err = work.StatsOf[generation.TreeStats](ctx, b, stages.Tree, 0); err != nil {
		return err
	}
	v, err := vocabulary.LoadVectorizer(ctx, b)
	if err != nil {
		return err
	}
	var ngrams tfidf.NGrams
	for p := range b.Plan.Partitions {
		n, err := work.StatsOf[tfidf.NGrams](ctx, b, stages.Vectorise, p)
		if err != nil {
			return err
		}
		ngrams.Total, ngrams.Unknown = ngrams.Total+n.Total, ngrams.Unknown+n.Unknown
	}
	doc.Vectorizer = generation.VectorizerStats{Features: v.Dim(), UnknownShare: ngrams.Share()}
	doc.Dataset, err = b.PartsOf(ctx, stages.Dataset)
	return err
}

// errStop ends a walk whose consumer wants no more.
var errStop = errors.New("stop")
