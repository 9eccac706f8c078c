// Package behaviour makes a view of items of what they are ordered with, which encoders place beside the text.
//
// The association of items (package pairs) is that in orders and in all that a customer has ordered, added up. Its rows
// are projected onto the strongest directions of a sample of them, V, by singular values s. So a row is a function of
// the item's own association and of the directions:
//
//	z_i = √(n/(n+10)) · u/‖u‖,   u = s^-½ · Vᵀ a_i,   n the orders of item i
//
// An item of few orders has a short row, and one without orders has none: its embedding is that of its text.
//
// How much the view weighs beside the text is decided by the newest fifth of the orders, and by older ones if that is
// few. Directions and rows of the other orders, beside the projected texts, are asked for pairs that only the fifth
// links. Where these are few, because a catalog has long been ordered in all its pairs, a fifth of all links is hidden
// and asked for. A weight counts only if it predicts them surely better than the text alone does. Orders that say
// nothing thus have the weight 0. Pairs that the evaluation hides are left out of everything.
package behaviour
