// Package build makes a generation as tasks over fixed partitions, which exchange named objects in the store. No task
// holds the graph, and any process that has the store can do any task.
//
// A Plan divides a generation. Its Stages come one after the other; the tasks of a stage need nothing of each other. A
// Worker does tasks: it implements tasks.Work, and a tasks.Engine says where and when each is done. Begin begins a
// build or finds the one that is unfinished, Run has all of it done.
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
//   - Whatever is read is verified, section by section. A task that finds an input damaged makes the task that wrote it
//     one that is not done, and fails with DamagedError; Run then does both again.
//   - The generation's own objects are written to their places at once, and counted for nothing until the last task
//     writes the document. That task removes what the others have exchanged.
//
// docs/BUILD.md says how to run it and what each task holds in memory; docs/decisions/0012 says why it is so.
package build
