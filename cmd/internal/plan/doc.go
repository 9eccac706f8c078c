// Package plan estimates what a staged build of a graph costs that nobody has built yet: per stage the tasks, the bytes
// read and written, the memory of a task, the time on a number of machines, and the money.
//
// Of estimates an Input from Rates. Rates come from a Meter, which watches a real build on a small graph.
// The stages and how they are divided are those of train/generation/staged, so that a plan and a build agree
// on tasks.
//
// # The model
//
// Every stage has a driver, the quantity that its work grows with: text bytes, links, nodes, the sample that the
// encoder is trained on, or nothing. Processor time and bytes of a stage are proportional to its driver. Two rules go
// beyond that: a task of pifa reads the projected texts of all nodes, so the stage reads ranges × nodes × projection;
// and n-grams that texts have in common are counted once a partition, so that merge grows with partitions.
//
// A task takes processor time on one core and the rest on all cores of its machine, in the shares that the Meter saw
// (Amdahl). A machine does one task at a time. Its time is that of its processor or of its network, whichever is
// longer. Stages follow one another.
//
// Memory of a task is a constant and a part that grows with the nodes of a partition, both from the build's code. If a
// task does not fit, the partitions are doubled; if no number of partitions fits, there is no plan.
package plan
