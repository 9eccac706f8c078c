// Package wide puts a table of n-grams beside a text encoder, and trains both at
// once:
//
//	h = p/‖p‖ + Σ_f Ψ(T)_f · E_f      Φ(T) = h / ‖h‖
//
// where p is what the encoder, a BERT, makes of the text, Ψ the text's TF-IDF and E_f the vector of
// n-gram f (package bag). The encoder knows what words mean. The table remembers exact words, such
// as brands and model numbers, which a tokenizer breaks into pieces. Cheng et al. (2016) call this
// "wide and deep".
//
// Start makes the table, Tuner trains network and table as one train.Network, and Encoder encodes
// with both.
//
// # The table first
//
// The table starts where package bag's training does, at a linear solution: the ridge regression of
// the neighbourhoods' PIFA on the text's projection, whose numbers become the first ones of h. It
// is then trained alone (xrt.TrainTable), which takes a small part of the time of one pass of a
// transformer, and scaled so that its part of h is twice as long as the encoder's on average. The
// two parts are unrelated at first. In 384 dimensions their sum distorts either only a little, and
// training aligns them.
//
// # Both together
//
// Both parts get the same gradient. The table moves by row-wise Adagrad at a rate of its own. In
// each step half of a text's n-grams are left out, and the others weigh twice as much.
//
// docs/MEASUREMENTS.md has the gain.
package wide
