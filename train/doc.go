// Package train is the vocabulary of training: the graph of a generation, the
// text features that training reads (Vectorizer, Projection), encoders, networks (an encoder in
// training) and progress.
//
// The packages below it are four floors. Imports point down, never up:
//
//	generation   the life of a generation: data set, fit, evaluation, heads, documents
//	objectives   what an encoder learns (neighbourhoods, links) and the one trainer
//	encoders     text to embedding: hybrid, bag, linear, bert; how they are stored
//	numeric      vectors, matrices, random numbers, optimizers, SIMD kernels
package train
