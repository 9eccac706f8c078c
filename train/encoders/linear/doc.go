// Package linear is the closed-form encoder: ridge regression from a text's projection (latent
// semantic analysis of Ψ(T), Rank numbers) to the mean PIFA of the node's labels (Dim numbers). It
// is the least-squares form of neighbourhood prediction (which labels has a node with this text?),
// which one pass of sums solves:
//
//	G = Σ w x xᵀ + λI    B = Σ w x tᵀ    W = G⁻¹B    Φ(T) = Wᵀx / ‖Wᵀx‖
//
// with x the projection of instance i's text, t the normalized sum of its labels' PIFA, and w =
// √degree. Instances with more labels have less noisy targets and get more weight; the root keeps
// hubs from dominating.
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
