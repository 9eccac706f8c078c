// Package examples shows the batches and embeddings of giantstream in other people's tools: SQL, a consumer of
// the sink topic, PyTorch, PyTorch Geometric. Each folder is complete and has a README.md; this package has only the tests that
// run them, where python3 has the packages they need.
package examples
