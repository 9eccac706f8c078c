// Package labeltree clusters labels into a balanced hierarchy, the multi-scale
// neighbourhoods that GIANT predicts: level 0 is the coarsest, the clusters of
// the last level (the leaves) partition the labels.
//
// # Algorithm
//
// Recursive balanced spherical 2-means, as in PECOS
// (pecos/core/utils/clustering.hpp, partition_skmeans): two random members
// x_l, x_r start a direction c = x_r − x_l; members are scored by ⟨c, x⟩ and
// cut at the median (ties by number); c becomes the difference of the unit
// sums of both halves; again until no member changes sides, or 20 times. Every cluster
// is halved, so a tree of 2^d leaves takes d rounds, and the levels are some of the rounds.
//
// Two things make it fast without changing what it computes. One product a member is
// enough in each round, since those with both halves add up to the product
// with the whole (split.go). And below the first three halvings sparse features are copied
// per cluster without the columns that only one member has (sparse.go); each
// worker holds one such copy, an eighth of the features or less.
//
// # Shape
//
// The number of clusters of each level is a power of two. Unless Levels says
// otherwise, there are as few leaves as keep them at 48 labels or fewer (24 to 48
// labels each; at least 16 leaves if each gets 2 labels), and each coarser
// level has a quarter of the clusters, down to no fewer than 16: 16-64-256
// for 7,000 labels, 32-128-512-2048 for 60,000.
//
// # Invariants
//
// Clusters of a level differ in size by at most 1. Labels whose features are
// all zero (they have no instances) are in no cluster: Cluster returns -1. The clusters
// of a level are numbered so that the children of cluster c are the range
// Children(level, c). Which label goes where depends on features, options and
// seed, not on the number of workers.
package labeltree
