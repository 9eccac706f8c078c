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
// sums of both halves; again until no member changes sides, or 20 times. Where
// a cluster has b children, ⌊b/2⌋ of them with their share of the members are cut from
// the rest, and both sides in turn, until each is one child (divide.go). Where b is a
// power of two, every cut is a halving and the tree is PECOS's.
//
// Two optimizations change nothing in the result. One product per member is enough in each round,
// since the products with both halves add up to the product with the whole (split.go). Below the
// first three cuts, sparse features are copied per cluster without the columns that only one member
// has (sparse.go); each worker holds one such copy, about an eighth of the features or less.
//
// A third changes it a little. A cluster of more than Options.Sample labels takes the direction of
// its cut from a random sample of that size. All members are then cut along that direction, so that
// the balance is exact (sample.go).
//
// # Shape
//
// Each level has a multiple of the clusters of the level before. Unless Levels says otherwise, the
// number of clusters of the coarsest level is a power of two, 16 or more if each gets 2 labels.
// Every other level has Branching times as many as the one before. There are about as few leaves as
// keep them at 48 labels or fewer: 16-64-256 for 7,000 labels, 32-128-512-2048 for 60,000, or
// 16-160-1600 with a branching of 10.
//
// # Invariants
//
// Clusters of a level differ in size by at most 1. Labels whose features are all zero (they have no
// instances) are in no cluster: Cluster returns -1. The clusters of a level are numbered so that
// the children of cluster c are the range Children(level, c). Which label goes where depends on
// features, options and seed. It depends neither on the number of workers nor on the machine: every
// rounding and the order of every sum are fixed (featurize/internal/portable).
package labeltree
