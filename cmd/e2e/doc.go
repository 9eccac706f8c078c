// Package e2e has the tests of the finished program. They build the program once and run it as its
// users do, in processes that are killed, interrupted and started again. What a run leaves behind
// is then read through the packages that wrote it.
//
// Tests named TestReal… need Apache Kafka and an S3 server (make test-real). TestFaults draws
// faults from a seed and checks everything against a model of the input (make test-faults). What
// commands print is tested by scripts in cli/testdata.
//
// The folder is a module of its own, giantstream/cmd/e2e: the servers and tools that these tests need
// are no dependencies of the program. It has the S3 server of make s3-up, too (s3), and the conformance
// suite of S3 stores (s3store), which runs on that server.
package e2e
