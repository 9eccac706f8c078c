// Package work is what the task of a build has in its hands. Means are those of the process: the store, the commit log,
// bounds. A Build is a generation as tasks see it. OutputsOf says what a task of an earlier stage has left: small
// figures, objects of sections, artifacts. A Task is one that is being done; it notes its own outputs and figures.
//
// A task reads nothing unverified. A reader that finds an output damaged or gone gets a DamagedError, with which Do
// makes the task that wrote it one that is not done. What several tasks of a process read whole, such as the encoder,
// is shared among them.
package work
