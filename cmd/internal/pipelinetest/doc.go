// Package pipelinetest runs tests of a pipeline's mapping: records go in, and the rows, edges and dead letters that
// they become are compared with what a file expects.
//
// Records are decoded by the decoders of the service. The graph that they state is computed by package oracle, with
// which the tests of the shards, and command verify, compare what is committed. So a test needs no broker, no store
// and no state, and takes milliseconds. It says nothing about embeddings.
package pipelinetest
