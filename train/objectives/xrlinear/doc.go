// Package xrlinear is XR-Linear (Yu, Zhang, Zhong, Dhillon: PECOS, JMLR 2022,
// section 4): neighbourhood prediction by linear classifiers on TF-IDF, one
// per cluster of the label tree and one per label, answered by beam search.
//
//	m, err := xrlinear.Train(ctx, x, y, tree, xrlinear.Options{}, progress)
//	best := m.Predict(m.NewQuery(), features, xrlinear.Beam{Width: 10, Top: 5}, nil)
//
// # Model
//
// Level t of the model decides between the children of a cluster of level t-1. The level above the
// first is a single root that holds everything. The last level is the labels themselves, the
// children of the tree's leaves. The classifier of child c is w_c, sparse, with a bias.
//
// # Training
//
// The classifier of a child is trained on the instances that could be sent to
// its parent: those that have a label there (teacher-forced negatives, TFN)
// and, as an option, those that the levels above send there by mistake
// (matcher-aware negatives, MAN). It minimises, over the rows x_i of the parent
// with y_i = ±1,
//
//	½‖w‖² + C·Σ_i max(0, 1 − y_i⟨w, x_i⟩)²
//
// by dual coordinate descent (Hsieh et al., ICML 2008), until all projected gradients are within
// Epsilon of each other. Weights below Threshold are dropped.
//
// What makes it quick:
//
//   - The children of a parent have the same instances. Up to 64 of them are
//     trained side by side, weights by feature and then by child: a row's features are read
//     once for all their margins and once for all their steps, in vector
//     registers (train/numeric/lanes), and a child costs little more than
//     none.
//   - A row that is nearly in order for all of them sits out some sweeps. A
//     solution counts once a sweep of all rows finds none that is off.
//   - Columns are numbered separately for each parent, the most frequent first, so that the
//     weights are as few as the parent's vocabulary and those in use lie together.
//   - A column that one instance alone has does nothing but add a constant to
//     that instance's entry of the dual's diagonal, and leaves the matrix.
//
// Heads fits classifiers by the same descent to dense rows: a start for the
// heads of an encoder in training.
//
// # Prediction
//
// A cluster's score is its parent's times exp(−max(0, 1 − ⟨w, x⟩)³), and the Width best clusters of
// each level pass their children on. The weights of the children of one parent are stored by
// feature, so a feature of the query is looked up once for all of them. Where many of the children
// have a weight for a feature, its row is stored in full, for the vector registers. Many queries
// are searched together, parent by parent, so that they find a parent's weights in the cache.
//
// Results do not depend on the number of workers.
package xrlinear
