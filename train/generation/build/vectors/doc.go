// Package vectors makes views of items of the vectors that inputs state of them, such as of their pictures, which
// encoders place beside the text.
//
// Each named vector is a view of its own. Its vectors x are mapped by
//
//	u/‖u‖,   u = Vᵀ(x/‖x‖ − m)
//
// with the mean direction m and the strongest directions V of a sample of them, which is drawn by the hashes of the
// ids. An item without the vector has no row. How much a view weighs, the training decides.
package vectors
