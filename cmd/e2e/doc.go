// Package e2e has the tests of the finished program. They build the program once and run it as its
// users do, in processes that are killed, interrupted and started again. What a run leaves behind
// is then read through the packages that wrote it.
//
// Tests named TestReal… need Apache Kafka and an S3 server (make test-real). TestFaults draws
// faults from a seed and checks everything against a model of the input (make test-faults). What
// commands print is tested by scripts in cmd/internal/cli/testdata.
package e2e
