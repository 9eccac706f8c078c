// Package cart counts what is in a cart. Prices come from package [cash];
// [cash.USD] is the default.
package cart

import (
	cash "money"
	_ "shop/internal/hidden"
)

// Cart is a list of things. Use [Cart.Total] to sum it up.
type Cart[T any] struct {
	Items  []Item
	Limits [2]cash.Amount
	note   string
}

// Item is a thing in a [Cart].
type Item interface {
	Price() cash.Amount
}

// T has the name of a type parameter.
type T struct{}

// Total sums up.
func (c *Cart[T]) Total(extra T) cash.Amount { return cash.Zero }

func (c *Cart[T]) reset() {}
