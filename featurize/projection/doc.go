// Package projection maps sparse TF-IDF vectors to few dense dimensions by a
// fixed linear map, frozen per generation like the vocabulary.
//
// Because the map is linear, a sum of projected texts is the projection of
// the sum: PIFA embeddings (featurize/pifa) can be kept as small dense
// sketches and updated by one addition per changed edge.
//
// Two maps are on offer:
//
//   - Fit: the right singular vectors of (a sample of the rows of) the TF-IDF
//     matrix, largest singular value first: latent semantic analysis. The
//     first k components are the best rank-k map, so Truncate(k) of a 512
//     dimensional projection serves as 256-dimensional sketch space.
//   - Random: a seeded sparse random projection that needs no data and no
//     memory.
//
// # Algorithm
//
// Fit is the randomized subspace iteration of Halko, Martinsson and Tropp
// ("Finding structure with randomness", 2011, algorithm 4.4) on the m × c
// sample A. The basis Q of the range is kept on the row side, where it is
// small; it is orthonormalized through the eigenvectors of its Gram matrix
// in float64, which also reveals the rank. With B = AᵀQ and BᵀB = W Λ Wᵀ the
// components are the columns of B W Λ^(-1/2).
//
// # Invariants
//
// The result depends on the matrix, the options and the seed, not on the
// number of workers. Each component's largest coefficient is positive, so
// signs are reproducible too. Memory while fitting is about
// 4·(2·features kept + 5·sample)·(dim + 32) bytes (232 MB at 512 dimensions),
// afterwards 4·(features kept)·dim (64 MB).
package projection
