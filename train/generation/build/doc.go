// Package build makes a generation as tasks over fixed partitions, which exchange named objects in the store. No task
// holds the graph, and any process that has the store can do any task.
//
// # The path of a build
//
// Worker.Begin begins a build or finds the one that is unfinished (begin.go): it stores the generation's document and
// its plan (stages.Plan). Worker.Run has the tasks done, stage by stage (run.go), by a tasks.Engine, which calls
// Worker.Do for each task, in any process (worker.go). Do reads the plan and calls the function of the stage with a
// work.Task. The functions are, in the order of a build:
//
//	graph        rows of the commit log become numbered nodes with links
//	vocabulary   features and projections of texts
//	behaviour    what items are ordered with, as a view of them
//	vectors      the items' own vectors, as views
//	linkweights  what the kinds of links weigh
//	labels       features of labels, and the tree over them
//	training     the training set and the encoder
//	embeddings   the embeddings, and what they are worth
//
// The last task, finishGeneration, writes the document that makes the generation complete (finish.go). The objects that
// tasks exchange are laid out by package sections. Imports run up this list, and from graph to work, stages and
// sections; behaviour, vectors, linkweights and labels do not know one another.
//
// # What holds
//
//   - A task is a pure function of the commit log at the cut, the settings, the plan and the outputs of earlier
//     tasks. It writes each output whole, and last done.json, which names them with sizes and checksums. So a task may
//     be done twice, late, or in two places at once.
//   - Nodes have the order of (hash of the id, id), and a partition is a run of that order. The number of partitions
//     changes which object a node is in, and nothing else: vectorizer, projection, tree, encoder and embeddings are the
//     same for any number. Shards and workers change neither.
//   - Every run of positions is a random sample, since positions go by a hash.
//   - Floats are added in the order of positions.
//   - Everything that is read is verified, section by section. A task that finds an input damaged makes the task that
//     wrote it one that is not done, and fails with work.DamagedError; Run then does both again.
//   - The generation's own objects are written to their places at once, and counted for nothing until the last task
//     writes the document. That task removes what the others have exchanged.
//
// docs/BUILD.md says how to run it and what each task holds in memory; docs/decisions/0012 says why it is so.
package build
