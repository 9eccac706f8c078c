// Package pairs says which items go together, from orders: what was bought, viewed or put into a cart together.
//
// An Incidence holds the items of each order and the orders of each item. A pair is counted from the orders of one of
// its items when it is asked for; all pairs of n items would be up to n²/2. So an order that is added or taken back
// changes no more than its own items, and what is left is exactly what it would be without the order.
//
// # Weights
//
// A large order says less of a pair of its items than a small one. An order that states k items weighs k^-½, as the
// integer round(2²⁴·k^-½), and so do its items and pairs. Sums of integers have the same bits in any order. The
// weighted share of the orders that hold an item, or a pair, is its probability: p_i = w_i/W and p_ij = w_ij/W, where W
// is the weight of all orders. A Measure is a function of the three.
//
// An order of more than MaxItems items counts in w_i and W, but not in w_ij: its pairs would cost the square of its
// size.
//
// # Ridges
//
// A Ridge says what completes an order: each item is regressed on its partners, so that a partner says what the others
// do not. An order that is asked about adds up what its items say of each further item.
//
// # Changes
//
// A Live holds orders that change, by key, and has what follows solved again: the items of a changed order at once, all
// others in turn. Once all had their turn, nothing is left of what came before.
//
// # Memory
//
// A line, which is an item of an order, takes 8 bytes, and an eighth more as lists grow. An order takes about 40, an
// item 32. A Counter takes 12 bytes an item. A Live takes about 80 bytes and the key for each order beside.
package pairs
