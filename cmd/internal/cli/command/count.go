package command

import (
	"errors"
	"math"
	"strconv"
)

// Count is the value of a flag that counts, as people write it: 250000, 250k, 10m, 1.6b or 1.6e9.
type Count int64

// String implements pflag.Value.
func (c *Count) String() string { return strconv.FormatInt(int64(*c), 10) }

// Type implements pflag.Value.
func (c *Count) Type() string { return "count" }

// Set implements pflag.Value.
func (c *Count) Set(text string) error {
	number, unit := text, 1.0
	if text != "" {
		number = text[:len(text)-1]
		switch text[len(text)-1] {
		case 'k', 'K':
			unit = 1e3
		case 'm', 'M':
			unit = 1e6
		case 'b', 'B':
			unit = 1e9
		default:
			number = text
		}
	}
	const most = 1e15 // below 2^53, so that each of them is a float64
	n, err := strconv.ParseFloat(number, 64)
	n = math.Round(n*unit*1e3) / 1e3 // 1.001k is 1001, which its product is not quite
	if err != nil || !(n >= 0 && n <= most) || n != math.Trunc(n) {
		return errors.New("must be a whole number, at most 1e15, such as 250000, 250k, 10m or 1.6e9")
	}
	*c = Count(n)
	return nil
}
