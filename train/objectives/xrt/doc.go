// Package xrt trains encoders to predict the neighbourhoods of their graph's nodes over a label
// tree: the XR-Transformer of GIANT, for any train.Network.
//
// Train is for any network: a transformer (train/encoders/bert) or a table of n-grams
// (train/encoders/bag). Set is the training set, and Result the matcher (package xmc) and a
// report; afterwards the network holds the trained weights. Bag.Train calls Train with the
// options that suit a table of n-grams, of the encoder bag and of a hybrid.
//
// # A step
//
// Package trainer has the loop: order, rates, validation, best weights, checkpoints. The
// objective here sends a batch of instances through the network in parts that the network
// bounds, each instance with a seed that decides what the network drops of it. The start of
// heads and the validation see instances whole. Each pooled vector, divided by its length and
// with a 1 appended (the bias), is scored by the heads of the levels in training. Heads return
// the gradient of the loss, which goes back through the division into the network. The heads
// take a step of Adam.
//
// # Links
//
// With Options.Links, each instance has a neighbour, drawn at random in each epoch, that must be
// nearer to it than the neighbours of the other instances of the batch (symmetric in-batch softmax).
// Clusters say which region of the graph a text belongs to, links which texts of the region.
//
// # Stages
//
// CoarseToFine trains one level after the other, as the paper does: 2,000,
// 10,000 and 100,000 steps on batches of 256, 256 and 512 with a rate of 6e-5
// for its three levels. Joint, the default, trains all levels in every step. Heads start
// when their level's stage begins: from the ridge regression of their targets on the
// network's present embeddings of a bounded sample, or as Start says. The heads' moments
// start at zero with each stage.
//
// With validation, the level D of the report is the one whose training gave the best weights;
// going level by level, this choice is the paper's choice of D.
//
// # The bag
//
// The table starts at the linear encoder (package bag), and the head of each cluster at the
// mean PIFA of its labels, so that the first prediction already makes sense. Each instance
// loses half of its n-grams at random, so that no single rare n-gram can memorize its
// neighbours. The rates fall linearly to zero. These defaults are measured on the shared
// graphs: the AUC of held-out instances and of hidden edges (amazon-products, 10 % hidden, one
// split), the class probe at 10 % of the labels (debian-packages).
//
//	amazon-products, leaves of 24         hidden  held out
//	joint, linear start, scale 7          0.883   0.857
//	  scale 5 / 10 / 15                   0.882 / 0.878 / 0.866   0.858 / 0.851 / 0.842
//	  level by level (scale 10)           0.869   0.849
//	  random start (scale 10)             0.874   0.841
//	debian-packages (scale 5)             probe   held out
//	weights by degree, 131,072 rows       0.772   0.879
//	  by the root of the degree           0.770   0.886
//	  65,536 rows                         0.774   0.876
//	  leaves of 16 instead of 48          0.772   0.882
//
// With all of the defaults: hidden edges 0.882 ± 0.004 over five splits
// (linear 0.805, text alone 0.636), probe 0.775 (linear 0.716, text alone
// 0.701). go test -v ./train/generation/fit with GIANTSTREAM_LONG=1 prints them.
//
// # Memory
//
// The network's own, what package trainer adds, per level clusters × (dim+1) numbers of
// weights, two moments and gradients, and the targets: 8 bytes for each pair of an instance
// and a cluster that holds labels of it.
//
// Zhang et al., "Fast Multi-Resolution Transformer Fine-tuning for Extreme
// Multi-label Text Classification" (NeurIPS 2021); Chien et al., "Node Feature
// Extraction by Self-Supervised Multi-scale Neighborhood Prediction" (2022).
package xrt
