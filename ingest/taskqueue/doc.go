// Package taskqueue hands the tasks of a build to processes on any number of machines, through a Kafka share group
// (KIP-932; Apache Kafka 4.2 or newer).
//
// Engine, the coordinator's side, publishes a stage's tasks, a record each, and waits for them. Worker takes them, one
// at a time. Both agree on a Queue: the topic of the tasks, the topic of reports, and the share group.
//
// # Who decides what
//
// The store is the truth about what is done: the engine asks Work.Done about a task before it publishes the task and
// again when a worker reports it. Reports only say where to look, and why a task failed. A report that is lost costs
// time, never a task.
//
// The broker is the truth about what is in flight. It hands a record to one worker at a time, under a lock that the
// worker renews. A worker that is killed loses the lock with its connection, a frozen one when the lock expires, and
// the broker hands the record to another. The late write of the first is harmless, because a task writes the same
// bytes wherever it is done. After MaxDeliveries deliveries the broker gives a record up.
//
// The group's start offset is the first record that the broker may still hand out. The broker has given up an
// unfinished task whose record lies below it: the task failed each time, or killed each of its workers. The engine
// then fails the stage. Apache Kafka stores that offset when a record is acknowledged, so the engine sends a probe, a
// record that is no task, when it has not heard of any worker for a while. A coordinator that starts again adopts the
// records from the start offset on instead of publishing their tasks twice; one of these that was given up is
// published once more, since it belongs to an earlier attempt.
//
// A task names its generation. A worker drops the tasks of a generation that is not being built.
//
// # Topics
//
// The topic of tasks needs one partition: members of a share group share partitions. The topic of reports has one,
// too, so that reports of a task are in order. See docs/OPERATIONS.md for what the broker must allow.
package taskqueue
