// Package drift measures how far a stream has gone from the generation that serves it, so that a new one can begin
// on evidence and not only by count and age.
//
// A Meter learns from the generation's own cut how well the generation does there, and adds up the rows that were
// committed after it. Four measures come out, each as it is now and as it was at the cut:
//
//   - unknown n-grams: the share of the n-grams of new texts that the vocabulary lacks. At the cut it is that of
//     the texts that the vocabulary was fitted on.
//   - label fit: the mean cosine of new labels' PIFA features to the nearest cluster of the label tree. At the cut
//     it is that of labels which take no part in the clusters' centres and count as many instances.
//   - link AUC: the probability that the end of a fresh edge is nearer to its other end than a node drawn by degree,
//     by the served embeddings: half of those nodes are of the cut, half are ends of other fresh edges. Each edge is
//     scored before a generation has learnt it (prequential; Gama, Sebastião, Rodrigues, On evaluating stream
//     learning algorithms, 2013). At the cut it is that of the edges hidden from the fit. It is measured in
//     undirected graphs: there the rows of both ends follow a new edge.
//   - cosine: the mean cosine of the embeddings of changed texts to those published at the cut, where it is 1.
//
// # Samples
//
// Each measure is taken on a sample of bounded size: the nodes, labels or edges with the lowest hashes of their ids.
// So the sample does not depend on the order in which shards are read, on the windows that rows came in, or on the
// process: the measures are a function of the generation and of the rows up to some manifest of each shard. A process
// that starts again reads the rows after the cut again and comes to the same figures. Until it has, and below
// MinCases, a measure is not known.
//
// Deletions are the exception: a deleted node leaves the sample, and the one that it had displaced does not return.
// So a process that has read every window may have a slightly smaller sample than one that has read merged objects,
// which lack deleted nodes.
//
// # Memory
//
// 12 MB at 256 dimensions on amazon-products, as it was measured: 4,096 embeddings at the cut, 1,024
// negatives, 1,024 labels of eight instances, and 1,024 edges with both ends, before the cut and after; and 65,536
// hashes of the known edges.
package drift
