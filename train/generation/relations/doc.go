// Package relations says how much links weigh. Each kind of link is a relation, and so are the links that orders give:
// some say much of which items belong together, some say nothing.
//
// # Kinds
//
// Weigh holds the latest links of each kind out, predicts them from the texts of their ends, and weighs a kind by how
// much surer than chance they are predicted. Say that a share p of a kind's links means something and the rest are
// random. Then the held-out links are ranked above random ones with a surplus (2·AUC − 1) of p times what is possible,
// and a sum over links, such as PIFA, has the least noise for its signal if each counts by its p: the weight is the
// surplus, relative to the best kind. A kind that is within three standard errors of chance weighs nothing.
//
// The predictor is ridge regression from the projected text of one end to that of the other (package linear), whose
// sums are kept by kind. So a second round, with the weights of the first, costs one more solution.
//
// # Weights that links state
//
// A stated weight w counts as w^e, over the mean of these of its kind: no unit matters. The exponent e is 0, ½ or 1,
// whichever has the most signal for its noise on the held-out links. 0 is that weights say nothing, ½ compresses a
// heavy tail.
package relations
