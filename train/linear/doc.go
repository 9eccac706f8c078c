// Package linear is the closed-form encoder: ridge regression from a text's
// projection (latent semantic analysis of Ψ(T), Rank numbers) to the mean
// PIFA of the node's labels (Dim numbers). It asks the question that
// neighbourhood prediction asks (which labels has a node with this text?) in
// the least-squares form, so that one pass of sums answers it:
//
//	G = Σ w x xᵀ + λI    B = Σ w x tᵀ    W = G⁻¹B    Φ(T) = Wᵀx / ‖Wᵀx‖
//
// with x the projection of instance i's text, t the normalised sum of its
// labels' PIFA, and w = √degree. Weighing by degree trusts the instances with
// more labels, whose targets are less noisy; the root keeps hubs from ruling.
//
// # Sums
//
// Sums holds G, B and what is needed for the residual. Sums of different
// shards, windows or hold-outs merge by addition, and the error of any W on
// the rows behind a Sums follows from the sums alone; so Fit chooses λ on
// held-out instances without reading a row twice, then solves with all.
//
// Fit gives the matrix; New joins it to the vectorizer and projection that it
// was fitted on and is the train.Encoder.
package linear
