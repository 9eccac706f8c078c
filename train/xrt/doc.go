// Package xrt fine-tunes a text encoder on its graph's neighbourhoods: the
// XR-Transformer of GIANT, for any encoder that has a gradient.
//
//	r, err := xrt.Train(ctx, tuner, source, levels, xrt.Options{Seed: 1}, xrt.Hooks{Judge: judge}, progress)
//
// Network is the encoder in training (train/bert's Tuner is one), Source the
// training set, an instance at a time with its targets at every level of the
// label tree, and levels the tree's shape; its finest level may be the labels
// themselves (xmc.WithLabels). Afterwards the network holds the
// trained weights and Result the matcher (package xmc) and a report.
//
// # A step
//
// A batch of texts goes through the network in pieces of a few dozen, each text with
// a seed that decides what the network drops of it: a function of the run's seed, the
// step and the place in the batch. The start of heads and the judge see texts whole. Each
// pooled vector, divided by its length and with a 1 appended (the bias), is
// scored by the heads of the levels in training; heads return the gradient
// of the loss, which goes back through the division into the network. Then
// the network takes one step (it clips and decays as it likes) and the heads
// one of Adam. The rate rises over the first tenth of a stage and then falls
// to zero.
//
// # Stages
//
// CoarseToFine trains one level after the other, as the paper does: 2,000,
// 10,000 and 100,000 steps on batches of 256, 256 and 512 with a rate of 6e-5
// for its three levels. Joint, the default, trains all levels in every step, since rows
// carry all targets. Heads start from the ridge regression of their targets on the
// network's present embeddings of a bounded sample (or from linear classifiers, from
// the mean of their instances, from their parents, or at random: Start), when their
// level's stage begins. The moments of the heads start anew with each stage.
//
// # Which weights are kept
//
// Given a Judge, its score at the start, at the end of every epoch and of
// every stage decides: the best weights are returned, and with them the level
// D whose training gave them. A stage without a better score for
// Options.Patience epochs ends early. Without a Judge the last weights are kept.
//
// # Determinism and resuming
//
// The weights are a function of the network's start, the source's order and
// the options, on any number of goroutines. The state between two steps can be
// written out, and a run that resumes from it ends with the same bits as one that was never
// interrupted. docs/format/trainer.md describes its bytes.
//
// # Memory
//
// The network's own, its best state in a temporary file, and per level
// clusters × (dim+1) numbers: weights, two moments, gradients and the best
// weights. Nothing grows with the number of instances.
//
// Zhang et al., "Fast Multi-Resolution Transformer Fine-tuning for Extreme
// Multi-label Text Classification" (NeurIPS 2021); Chien et al., "Node Feature
// Extraction by Self-Supervised Multi-scale Neighborhood Prediction" (2022).
package xrt
