// Package nodemap lays the embeddings of a generation out on a plane.
//
// [Read] takes a sample of the nodes, those with the smallest SHA-256 of their id, so that the same
// generation always has the same sample. [Layouts] places the sample twice. PCA shows the two
// directions in which the embeddings vary most: large distances mean something, and dense groups
// overlap. The other layout keeps neighbours together: the fuzzy graph of the 15 nearest neighbours
// is laid out by stochastic gradient descent on UMAP's objective (McInnes, Healy, Melville, 2018),
// beginning at PCA: groups mean something, the distance between groups does not. For both, Preserved
// says how many of a node's nearest neighbours are among its nearest on the map.
//
// Memory: the vectors of the sample. Everything is a function of the generation: the same map at
// every call.
package nodemap
