// Package trainer is the one training loop. It trains a train.Network, and the weights that an
// Objective adds to it, over epochs of shuffled instances.
//
//	report, err := trainer.Train(ctx, net, objective, instances, options, hooks, progress)
//
// Packages xrt (neighbourhoods) and linkpred (links) have objectives; they call Train for
// their own callers. What exists here, once: the order of instances, learning rates, stages,
// validation and patience, the best weights, the loss curve, and checkpoints.
//
// # A step
//
// Objective.Step runs a batch of instances forwards and backwards through the network. The
// network then takes one step of its optimizer (it clips and decays as it likes), and
// the objective one of its own. The rate rises over the warm-up of a stage and then falls to
// zero.
//
// # Which weights are kept
//
// With Hooks.Validate, its score at the start, at the end of every epoch and of
// every stage decides: the best weights are kept. A stage without a better score for
// Options.Patience epochs ends early. Without validation the last weights are kept.
//
// # Determinism and resuming
//
// The weights are a function of the network's start, the instances and
// the options, on any number of goroutines. The state between two steps can be
// written out, and a run that resumes from it ends with the same bits as one that was never
// interrupted. docs/format/trainer.md describes its bytes.
//
// # Memory
//
// The network's own, its best state in a temporary file, the objective's weights and
// moments and its best weights, and 8 bytes per instance for its order.
package trainer
