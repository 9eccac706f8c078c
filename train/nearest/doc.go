// Package nearest finds the vectors that have the highest cosine with a query. An Index holds unit vectors in
// twelve bits, takes changes at any time, and answers the same for the same vectors, whatever the order in which
// they came.
//
// # Scores
//
// A vector v is stored as v ≈ s·(c + f/16), with whole numbers c from −127 to 127 and f from −8 to 7, and a scale s
// of its own. A query is rounded to whole numbers of up to 16 bits. It is compared with the codes c of vectors, and
// with f where a vector may be among the best by c. So nearly all of the error of a cosine comes from f: about 0.00005
// at 256 dimensions. Products of whole numbers are exact, so every processor gives the same scores. Among equal scores
// the smaller id comes first.
//
// # Cells
//
// A small index is searched as a whole. A large one is divided into cells (an inverted file: Jégou, Douze and
// Schmid, "Product quantization for nearest neighbor search", PAMI 2011). Each vector is in the cell whose
// centre has the highest inner product with it, and a query looks only into the cells with the best centres.
// How many it looks into is measured, not set: Calibrate takes the fewest that find Recall of the nearest ten, on a
// sample. Centres and their number are a function of the vectors that Train is given, in order.
//
// Where some vectors may be an answer, they can lie anywhere. Such a query ends when it is not likely that the cells
// left have a better answer than those found: when the vectors there that are expected to score above the k-th are at
// most the share Missed of k. How often a vector of a cell scores how far above the cell's centre is measured on the
// same sample, apart for cells that come early and late. So a query whose answers lie together ends soon, and one that
// only far vectors may answer goes on.
package nearest
