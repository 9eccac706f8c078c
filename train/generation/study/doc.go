// Package study compares what can be made of a graph: encoders with each other (Compare), the
// paper's ablations (Ablate), a linear matcher (Matcher), and classifiers on a generation's
// embeddings (Classify). It calls the stages of package fit and stores nothing.
//
// All studies of a graph take a generation.Source and Options, hide a part of the graph, learn from
// the rest and measure on what was hidden, once per seed.
package study
