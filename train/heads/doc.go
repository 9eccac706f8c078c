// Package heads trains what a person trains on embeddings: classifiers of
// nodes. They are the downstream models of the paper, so that embeddings can be
// compared as there, on one's own graph and labels.
//
//	split, err := heads.ByRate(classes, 0.1, 0.1, seed)
//	r, err := heads.Train(ctx, heads.SAGE, heads.Data{Vectors: z, Dim: d, Neighbours: adj, Classes: classes},
//		split, heads.Options{Seed: seed}, progress)
//
// # Heads
//
//   - MLP sees a node's embedding alone: one hidden layer, ReLU, dropout.
//   - SGC (Wu et al. 2019) smooths the embeddings over Hops hops, Sᴷ·X with
//     S = D^-½·(A+I)·D^-½, and is a logistic regression on the result.
//   - SAGE (Hamilton et al. 2017) has two layers, each h_v = ReLU(W·x_v + b +
//     U·mean of x_u over neighbours u), the last without ReLU. It trains on
//     minibatches whose neighbourhoods are sampled (Options.Fanout) and
//     predicts from whole neighbourhoods.
//
// The inputs are standardised, each dimension to mean 0 and deviation 1 over
// all nodes, so that the defaults suit embeddings of any scale.
//
// # Training
//
// Mean cross-entropy over minibatches of training nodes, Adam with the weight
// decay in the gradient. After each epoch the validation nodes are judged, and the weights
// of the epoch with the best accuracy (of equal ones, the lower loss) are
// those that the report is about; Patience epochs without a better one end the
// training. Without validation nodes all epochs are run and the last weights count.
//
// # Splits
//
// ByRate draws nodes at random, the same share of every class; ByTime trains
// on what came first and tests on what came last; ReadSplit reads a file. A test node
// is never looked at before the report.
//
// # Determinism
//
// Order of nodes, dropout and sampled neighbours are functions of the seed and
// their place; the result is the same on any number of goroutines.
//
// # Memory
//
// Beside the embeddings (n×Dim) their standardised copy; SGC and SAGE hold
// another for the smoothed ones or the means of neighbours, and SAGE the hidden
// layer of all nodes (n×Hidden) while it predicts.
package heads
