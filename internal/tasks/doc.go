// Package tasks is the contract between a build of a generation and what distributes it. A stage is a list of
// tasks. A task names a generation, a stage and a partition, and nothing else: any process that has the store and
// the settings can do it.
//
// Work knows what a task is. Engine decides where and when tasks are done. Local is the engine of one process.
//
// An engine may do a task twice, late, or at the same time in two places: Work.Do writes named objects whole or not
// at all, and a second run writes the same bytes. A task names its generation so that a task of an abandoned build,
// delivered late, does no harm to the next one.
package tasks
