// Package broker runs a Kafka broker inside this process, for trying the
// pipeline out and for tests: github.com/twmb/franz-go/pkg/kfake on a loopback
// port, with its log on disk.
//
// What it keeps. Every record is written to its segment file before it is
// acknowledged, so a killed process (kill -9) loses nothing that was acknowledged: the
// operating system holds the written pages. A crash of the machine can
// lose the last seconds, because nothing is synced before a segment is rolled or
// the broker closed; use a real cluster where that matters. A batch torn by the crash is
// cut off when the log is read again.
//
// What it costs. Records stay on disk; memory holds an index entry per batch:
// 800,000 records of 600 bytes (470 MB on disk) were produced in 3 s on two cores with a peak
// of 53 MB. Opening a log that was not closed reads all of it, at one time
// its size in memory, which is free again afterwards (498 MB and 0.5 s for the same log). One
// goroutine serves all requests. There is no replication, no
// access control, and nobody outside this machine can reach it.
package broker
