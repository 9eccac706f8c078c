// Package faults makes the servers around a pipeline fail: what its fault
// tests (TestFaults in cmd/giantstream) put between the program and the
// broker, the object store and the disk.
//
//	worker ──▶ Proxy ──▶ Broker          a Kafka broker in a process of its own
//	       ──▶ Proxy ──▶ HTTP ──▶ S3     errors that an S3 server gives by itself
//	       ──▶ disk                      FillDisk
//
// A Proxy (toxiproxy) tears, delays and stalls connections. HTTP answers
// requests with errors, or loses answers to requests that were carried out: the
// two look alike to the client, and are not. A Broker is killed and started
// again on its log. FillDisk takes a process's disk space away.
//
// Nothing here decides when: the tests do, from a seed.
package faults
