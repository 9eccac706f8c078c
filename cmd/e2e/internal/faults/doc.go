// Package faults makes the servers around a pipeline fail. The fault tests (TestFaults)
// put it between the program and the broker, the object store and the disk.
//
//	worker ──▶ Proxy ──▶ Broker          a Kafka broker in a process of its own
//	       ──▶ Proxy ──▶ HTTP ──▶ S3     errors that an S3 server gives by itself
//	       ──▶ disk                      FillDisk
//
// A Proxy (toxiproxy) tears, delays and stalls connections. HTTP answers requests with errors, or
// loses answers to requests that were carried out: the client cannot tell the two apart. A Broker
// is killed and started again on its log. FillDisk takes a process's disk space away.
//
// The tests decide, from a seed, when something fails.
package faults
