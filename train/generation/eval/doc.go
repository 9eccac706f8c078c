// Package eval measures embeddings: how well they predict hidden links and the classes of nodes,
// and which nodes are nearest to each other.
//
// For links, Split comes before PIFA, tree and targets; what is fitted and trained sees its known
// graph alone, and Links asks for the hidden edges. The package has an example.
//
// # Protocol for links
//
// Split hides each undirected edge with the given probability, decided by a
// hash of the seed and the two ids, and removes it in both directions. Texts
// stay: the vectorizer and its projection see the texts of all nodes
// (transductive in the texts), nothing sees a hidden edge.
//
// Each hidden edge is scored from one end (the query, chosen by hash) to the
// other. Negatives for a query are drawn with replacement with probability
// proportional to their degree in the known graph, so that being popular
// earns nothing; the query itself and all its neighbours, known or hidden,
// are drawn again. Scores are cosines.
//
//   - AUC: one negative per hidden edge; the probability that a hidden edge
//     scores above a negative pair, over all pairs of the two sets, ties half
//     (Mann–Whitney). Its standard error is DeLong's.
//   - MRR, Hits@10: the hidden edge is ranked among 100 negatives of the same
//     query, ties half.
//
// ByDegree groups the queries, and the nodes of the class probe, by their degree in the known graph.
//
// # Protocol for unseen nodes
//
// SplitNodes hides each node with the given probability, decided by a hash of the seed and its id, with all its
// edges. Nothing sees an unseen node's text or links: neither the vectorizer nor its projection nor the training (the
// inductive case). Afterwards its text is embedded like all others. Its links to seen nodes are scored from the
// unseen end against negatives as above; links between two unseen nodes take no part. A probe trained on all seen
// nodes predicts its class.
//
// # Protocol for classes
//
// Probe trains a multinomial logistic regression on a share of the nodes that have a class and reports the accuracy
// on the rest, the mean over five random choices of the training nodes (one, of more than 2,048 nodes). Embeddings
// are scaled to length 1. The probe tries seven strengths of regularization (scikit-learn's C, 0.1 to 100) on four
// fifths of the training nodes and keeps the one that classifies the other fifth best. It uses at most 32,768
// training nodes, and at most 4,000 and 1,000 for this choice.
//
// The standard error of an accuracy has two parts: the choice of the training nodes (the
// standard deviation of the repeats over the root of their number), and the nodes as a sample
// (binomial, of all nodes that took part).
//
// Prober.ProbeUnseen trains one probe on some nodes and asks it about others: isolated or unseen ones.
package eval
