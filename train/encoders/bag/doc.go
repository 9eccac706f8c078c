// Package bag is an encoder that trains on CPUs: every n-gram of the
// vectorizer has a vector, and a text's embedding is their sum, weighted by
// TF-IDF, scaled to length 1:
//
//	h = Σ_f Ψ(T)_f · E_f      Φ(T) = h / ‖h‖
//
// Model is the table of vectors, Encoder a model behind its vectorizer, and Network a model
// in training (train.Network): package train/objectives/xrt trains it.
//
// # Start
//
// The linear encoder is such a bag: with P the projection and W the ridge
// solution, E = P·W gives the same embeddings. Start returns that table, for the n-grams
// that are in most texts.
//
// # Training
//
// A network reads Ψ of its instances from Features, which are computed once. The seeds that Forward
// gets decide which n-grams it leaves out. The table moves by row-wise Adagrad: one accumulator per
// n-gram costs 1/Dim of the table, where Adam's moments cost two tables.
//
// # Determinism
//
// One goroutine sums the gradients of an n-gram, in order of the batch. So the same features,
// seeds, gradients and rates give the same bits on any number of cores.
package bag
