// Package heads trains classifiers of nodes on embeddings. They are the downstream models of the
// paper, so that embeddings can be compared as there, on one's own graph and labels.
//
// A split (ByRate, ByTime or ReadSplit) says which nodes to train on and to test; Train trains a
// head on them and reports. The package has an example.
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
// The inputs are standardized, each dimension to mean 0 and deviation 1 over
// all nodes, so that the defaults suit embeddings of any scale.
//
// # Training
//
// Training minimizes the mean cross-entropy over minibatches of training nodes by Adam, with the
// weight decay in the gradient. After each epoch the head is scored on the validation nodes. The
// report is about the weights of the epoch with the best accuracy; between equal accuracies, the
// lower loss decides. Training ends after Patience epochs without an improvement. Without
// validation nodes, all epochs run and the last weights are used.
//
// # Splits
//
// ByRate draws nodes at random, the same share of every class. ByTime trains on the earliest nodes
// and tests on the latest. ReadSplit reads a file. Test nodes are not used before the report.
//
// # Determinism
//
// Order of nodes, dropout and sampled neighbours are functions of the seed and
// their place; the result is the same on any number of goroutines.
//
// # Memory
//
// Every head holds the embeddings (n×Dim) and their standardized copy. SGC and SAGE hold another
// copy for smoothed embeddings or means of neighbours, and SAGE the hidden layer of all nodes
// (n×Hidden) while it predicts.
package heads
