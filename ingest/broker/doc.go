// Package broker runs a Kafka broker inside this process, for trying the pipeline out and for
// tests: github.com/twmb/franz-go/pkg/kfake on a loopback port, with its log on disk.
//
// # Durability
//
// Every record is written to its segment file before it is acknowledged, so a killed process (kill
// -9) loses nothing that was acknowledged: the operating system holds the written pages. A crash of
// the machine can lose the last seconds, because nothing is synced before a segment is rolled or
// the broker closed. Use a real cluster where that matters. Opening the log cuts off a batch that
// the crash has torn.
//
// # Cost
//
// Records stay on disk; memory holds an index entry per batch. On two cores, 800,000 records of 600
// bytes (470 MB on disk) were produced in 3 s with a peak of 53 MB. Opening a log that was not
// closed reads all of it, and needs its size in memory meanwhile (498 MB and 0.5 s for the same
// log). One goroutine serves all requests. There is no replication and no access control, and the
// broker cannot be reached from outside this machine.
package broker
