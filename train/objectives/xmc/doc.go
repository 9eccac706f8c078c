// Package xmc is extreme multi-label classification over a label tree: the
// neighbourhood prediction task that trains an encoder, and the matcher that
// answers it. It knows embeddings and clusters, not encoders: package train/objectives/xrt
// joins the two.
//
// A Problem says, for every level of the tree from coarse to fine, how many
// clusters there are, which cluster of the level above holds each, and which
// clusters hold each instance's labels. Heads are the trainable part of the
// matcher, one vector per cluster. In a training step the encoder shows each
// instance's embedding to Heads.Forward, which returns the loss and writes
// the gradient with respect to the embedding, and Heads.Update moves the
// vectors of the clusters that took part.
//
// # Candidates
//
// A level of at most fullLevel clusters is scored whole. At a finer level an
// instance's candidates are the children of two kinds of parents: those of
// its positives (teacher-forced negatives, TFN) and the ones that the level
// above scored highest (matcher-aware negatives, MAN). Both are what
// XR-Transformer (Zhang et al., NeurIPS 2021) calls them. Options.Negatives may ask
// for one kind only.
//
// WithLabels adds the labels themselves as the finest level. Their heads take memory for each node
// of the graph, but clusters alone are a coarser target. Finest adds the labels where there are not
// too many.
//
// # Loss
//
// The default is the softmax over the candidates against the shares of the instance's labels in
// each cluster: with unit embeddings z, head vectors w and temperature 1/s,
//
//	p = softmax(s·⟨z, w_c⟩),   loss = −Σ_c q_c ln p_c,   q_c ∝ labels in c
//
// times a weight per instance, averaged over levels and the batch. The paper's squared hinge over
// independent clusters and the binary cross-entropy are available as well; softmax gave better
// embeddings.
//
// # Starts
//
// Heads begin at zero and are then set: Centroids for an encoder that begins
// at the linear solution; Solve, the ridge regression on present embeddings;
// AddMeans and EndMeans, the mean of a cluster's instances; Inherit, the parents'
// vectors; Random.
//
// # Determinism
//
// Forward writes only to its own slot and Update sums each cluster's gradient
// in order of slots, so a step gives the same bits on any number of
// goroutines.
package xmc
