// Package dataset reads a generation's training set,
// generations/<g>/dataset/part-*.parquet: a row per instance, with text,
// labels, features and the targets of every level (package sink/rows).
//
//	d, err := dataset.Open(ctx, store, "generations/000001/dataset")
//	for row, err := range d.All(ctx) { … }              // stored order
//	for row, err := range d.Epoch(ctx, seed, epoch) { … } // shuffled
//
// # Order of an epoch
//
// The order is a pure function of the parts, the seed and the epoch, so that
// any trainer, in any language, can repeat or resume it: docs/format/dataset.md
// gives the algorithm. Memory is bounded by the shuffle buffer, whatever the
// size of the training set: parts are read one after the other in random
// order, and each row leaves the buffer at a random time.
package dataset
