// Package linkpred trains a text encoder by link prediction: the baseline that GIANT's paper
// calls BERT+LP (Chien et al., ICLR 2022). It exists to be compared with; generations are
// trained by package xrt. Package trainer has the loop.
//
// # The loss
//
// A triplet is an anchor a, one of its neighbours p and a node n, drawn
// uniformly, that is neither a nor its neighbour. With z the encoder's vectors,
// divided by their lengths,
//
//	max(0, margin − ⟨z_a, z_p⟩ + ⟨z_a, z_n⟩),
//
// which is half of the triplet loss in squared distances with twice the
// margin, since ‖z_a − z_p‖² = 2 − 2⟨z_a, z_p⟩ (Schroff et al., 2015). The loss draws the
// texts of linked nodes together. Where linked nodes are alike, that is what is
// wanted. Where unlike nodes are linked (a heterophilous graph) it is the
// opposite, and the paper's argument for neighbourhoods: nodes of a class have
// similar neighbourhoods in both cases. A test in package xrt shows it.
//
// # Networks
//
// Train takes any train.Network. A bag.Network trains on a CPU in seconds: it has the same
// table and optimizer as the encoder bag, started from the projection of the text (LSA), as
// BERT+LP starts from plain BERT.
//
// # Determinism
//
// Triplets are functions of seed, epoch and anchor; the result is the same on
// any number of goroutines.
package linkpred
