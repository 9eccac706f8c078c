// Package dataset reads a generation's training set,
// generations/<g>/dataset/part-*.parquet: a row per instance, with text,
// labels, features and the targets of every level (package sink/rows).
//
//	d, err := dataset.Open(ctx, store, "generations/000001/dataset")
//	for row, err := range d.All(ctx) { … }                      // stored order
//	for row, err := range d.Epoch(ctx, seed, epoch, skip) { … } // shuffled
//	for mine, err := range d.Batches(ctx, seed, epoch, dataset.Share{
//		Batch: 256, Rank: rank, World: world, Step: step}) { … } // several trainers
//
// # Order of an epoch
//
// The order is a pure function of the parts, the seed and the epoch, so that
// any trainer, in any language, can repeat or resume it: docs/format/dataset.md
// gives the algorithm. Row groups come in random order, and the rows of 16 of
// them are mixed. So memory is bounded by two such windows (one in use, one
// read ahead) whatever the size of the training set, and a trainer that
// resumes reads nothing before the window it stopped in.
//
// # Several trainers
//
// A batch is a range of positions, whatever the number of trainers, and each of
// them takes an equal slice of it: the sum of their gradients is that of one
// trainer alone, and training may go on with more or fewer of them after any
// step. Each reads all windows and keeps its slice: that costs bandwidth, which
// text and targets need little of (set Columns), and buys that simplicity.
package dataset
