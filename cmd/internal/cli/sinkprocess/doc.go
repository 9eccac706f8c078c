// Package sinkprocess has the commands that keep a database equal to the embeddings topic, in a process of their own:
// 'giantstream sink', and the programs for one kind of sink, such as cmd/giantstream-iceberg.
package sinkprocess
