package generation

import (
	"context"
	"errors"
	"log/slog"

	"giantstream/featurize/labeltree"
	"giantstream/sink"
	"giantstream/sink/parquetio"
)

const (
	mappingName = "mapping.parquet"
	// mappingFormat is the name and version of mapping.parquet.
	mappingFormat = "mapping/1"
)

// MappingStats compares the tree's clusters with the clusters of the parent generation.
// Mapping.parquet has every flow.
type MappingStats struct {
	// Shared labels are in both trees' label sets, New ones in this one's alone,
	// Gone ones in the parent's alone.
	Shared int `json:"shared"`
	New    int `json:"new"`
	Gone   int `json:"gone"`
	// UnknownLinks is how many of the links of this generation lead to a label
	// that the parent's tree has in no cluster: rows written under the
	// parent did not count them in their targets.
	UnknownLinks int            `json:"unknown_links"`
	Levels       []LevelMapping `json:"levels"`
}

// LevelMapping compares a level of the parent's tree with the level of this
// one that has about as many clusters.
type LevelMapping struct {
	OldLevel    int `json:"old_level"`
	NewLevel    int `json:"new_level"`
	OldClusters int `json:"old_clusters"`
	NewClusters int `json:"new_clusters"`
	Labels      int `json:"labels"` // in a cluster of both
	// Matched is the share of the labels that went where most of their old
	// cluster went.
	Matched float64 `json:"matched"`
	// AMI is the adjusted mutual information: 1 for the same clusters, 0 for
	// clusters as alike as chance would have them.
	AMI float64 `json:"ami"`
}

// flow is a row of mapping.parquet.
type flow struct {
	OldLevel   int32 `parquet:"old_level"`
	OldCluster int32 `parquet:"old_cluster"`
	NewLevel   int32 `parquet:"new_level"`
	NewCluster int32 `parquet:"new_cluster"`
	Labels     int64 `parquet:"labels"`
}

// MapParent writes which clusters of the parent generation of doc became which clusters of tree, and returns how much
// they agree: nil for a parent that is gone or damaged by then. label returns the label of tree that has an id, and
// unknownLinks how many links lead to labels that are not known.
func MapParent(ctx context.Context, store sink.Store, doc *Doc, tree *labeltree.Tree,
	label func(id string) (int, bool), unknownLinks func(known []bool) (int, error), log *slog.Logger) (*MappingStats,
	error) {
	old, shared, err := parentLabels(ctx, store, doc.Parent, label)
	if errors.Is(err, ErrNone) || errors.Is(err, ErrDamaged) || IsDamage(err) {
		log.Warn("no mapping of clusters: the parent generation is gone or damaged", "parent", doc.Parent, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := make([]bool, tree.Labels())
	for _, s := range shared {
		known[s.New] = old.Cluster(0, int(s.Old)) >= 0
	}
	stats := &MappingStats{Shared: len(shared), New: tree.Labels() - len(shared), Gone: old.Labels() - len(shared)}
	if stats.UnknownLinks, err = unknownLinks(known); err != nil {
		return nil, err
	}
	overlaps := labeltree.Mapping(old, tree, shared)
	for _, o := range overlaps {
		stats.Levels = append(stats.Levels, LevelMapping{OldLevel: o.OldLevel, NewLevel: o.NewLevel,
			OldClusters: old.Clusters(o.OldLevel), NewClusters: tree.Clusters(o.NewLevel),
			Labels: o.Labels, Matched: o.Matched(), AMI: o.AMI()})
	}
	return stats, writeMapping(ctx, store, Prefix(doc.Generation)+mappingName, doc.Generation, overlaps)
}

// parentLabels returns the parent's tree, and its labels that a new tree has, too.
func parentLabels(ctx context.Context, store sink.Store, parent int64, label func(id string) (int, bool)) (
	tree *labeltree.Tree, shared []labeltree.Shared, err error) {
	doc, err := Load(ctx, store, parent)
	if err != nil {
		return nil, nil, err
	}
	if tree, err = loadOf(ctx, store, doc, TreeName, labeltree.Read); err != nil {
		return nil, nil, err
	}
	shared, err = SharedLabels(ctx, store, doc, label)
	return tree, shared, err
}

// SharedLabels pairs the labels of the parent with those of a new tree. The parent's come in the order of its tree.
func SharedLabels(ctx context.Context, store sink.Store, parent *Doc, label func(id string) (int, bool)) (
	shared []labeltree.Shared, err error) {
	old := int32(0)
	for l, err := range readLabels(ctx, store, parent) {
		if err != nil {
			return nil, err
		}
		if at, ok := label(l.NodeID); ok {
			shared = append(shared, labeltree.Shared{Old: old, New: int32(at)})
		}
		old++
	}
	return shared, nil
}

func writeMapping(ctx context.Context, store sink.Store, key string, generation int64,
	overlaps []labeltree.Overlap) error {
	format := parquetio.Format[flow]{
		Name:       mappingFormat,
		Size:       func(*flow) int { return 24 },
		Generation: func(*flow) int64 { return generation },
	}
	_, err := parquetio.Put(ctx, store, key, format, func(yield func(flow, error) bool) {
		for _, o := range overlaps {
			for _, f := range o.Flows {
				row := flow{int32(o.OldLevel), f.Old, int32(o.NewLevel), f.New, int64(f.Labels)}
				if !yield(row, nil) {
					return
				}
			}
		}
	})
	return err
}
