// Package plan estimates what a build of a graph costs that nobody has built yet: per stage the tasks, the bytes
// read, written and shuffled, the memory of a task, the time on a number of machines, and the money.
//
// Of estimates an Input from a Calibration. Calibrate builds a small graph in several divisions and fits what each
// stage cost. The stages and how they are divided are those of train/generation/build, so that a plan and a build
// agree on tasks.
//
// # The model
//
// What a stage costs is a sum of terms, each a quantity that its work grows with (Shapes) times a rate. Quantities
// follow from the graph and its division; a stage has one or two that matter, so that few builds tell them apart.
// Rates are never negative, and fitted to relative errors, since a stage of the small build and one of the large count
// alike.
//
// A machine does several tasks at a time, as many as its cores and its memory allow, and they share its models. A task
// takes processor time on one core and the rest on the cores that it has, in the shares that calibration saw (Amdahl).
// The time of a stage is that of the processor or of the network, whichever is longer. Stages follow one another.
//
// Memory of a task is a constant and a part that grows with the nodes of a partition, both from the build's code. If
// one task does not fit, the partitions are doubled; if no number of partitions fits, there is no plan.
package plan
