// Package sampler chooses the instances that an encoder is trained on where a graph has more of them than there is
// time for. A choice is a pure function of the graph, the kind of sampler and the seed: any number of workers makes
// the same one.
//
// Chien et al. (2022) train on half of ogbn-papers100M, chosen by the score of BiRank (X. He, M. Gao, M.-Y. Kan and D.
// Wang: BiRank: Towards Ranking on Bipartite Graphs, IEEE TKDE 29, 2017) on the bipartite graph of instances and
// labels.
package sampler
