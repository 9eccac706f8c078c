// Package eval measures embeddings: do they predict links they have not seen,
// do they tell a node's class, do a node's nearest neighbours make sense.
//
// The order of calls for links:
//
//	known, hidden := eval.Split(graph, 0.10, seed)   // before PIFA, tree and targets
//	…fit and train on known…
//	m, err := eval.Links(embeddings, dim, known, hidden, eval.LinkOptions{Seed: seed})
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
// # Protocol for classes
//
// Probe trains a multinomial logistic regression on a share of the nodes that
// have a class and reports the accuracy on the rest, the mean over several
// random choices of the training nodes.
package eval
