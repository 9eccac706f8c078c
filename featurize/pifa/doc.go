// Package pifa embeds labels by positive instance feature aggregation: the
// embedding of a label is the sum of the features of the instances that have
// it, scaled to length 1 (Chien et al., GIANT, ICLR 2022):
//
//	z_l = v_l / ‖v_l‖,  v_l = Σ_{i: Y[i,l]=1} Ψ(T_i)
//
// In neighbourhood prediction a label is a node, and the instances that have
// it are its neighbours.
//
// Exact computes Z over sparse TF-IDF features; on large graphs it has
// hundreds of millions of entries. A Sketch keeps the sums of linearly projected features
// (featurize/projection) instead: n × D numbers, in which one changed edge is
// one addition of D numbers. Normalized turns the sums into embeddings.
//
// LabelFeatures makes the label features that the paper compares.
//
// # Invariants
//
// A label without instances is zero, not noise: a Sketch counts the instances
// of each label and clears the sum when the last one goes. Such labels have
// no place in a label tree and are never targets. Results do not depend on
// the number of workers. A Sketch after any sequence of updates agrees with
// a sketch of the resulting graph to about 1e-6 of the summed magnitudes that passed
// through it (float32 rounding), which the tests assert as 1e-4.
package pifa
