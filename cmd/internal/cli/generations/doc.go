// Package generations has the commands about finished generations: list, compare and choose them, write a page about
// one, and find similar nodes in one.
package generations
