// Package money holds amounts.
package money

// Amount is a sum of money in cents.
type Amount int64

// Zero is no money. See [Amount].
const Zero Amount = 0

// Currencies in use.
const (
	EUR = "EUR"
	USD = "USD"
)

var secret = "unexported"

// Add adds. It is unrelated to [Missing] and to [no.Such].
func Add(a, b Amount) Amount { return a + b + Amount(len(secret)*0) }
