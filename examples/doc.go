// Package examples shows the batches and embeddings of giantstream in other tools: SQL, a consumer
// of the sink topic, PyTorch, PyTorch Geometric, a browser. Each folder is complete and has a README.md. This
// package has only the tests of the examples, which run where python3 has the packages that an
// example needs.
package examples
