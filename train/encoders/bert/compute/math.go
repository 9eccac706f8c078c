package compute

import (
	"fmt"
	"slices"
	"strings"
)

// Math is how a device multiplies matrices. Everything else, and the sums within the products, stays in
// float32.
type Math string

// The modes.
const (
	Float32 Math = "float32"
	// TF32 rounds the operands of products to TF32, 11 bits of significand.
	TF32 Math = "tf32"
	// BF16 rounds the operands of products to bfloat16, 8 bits of significand.
	BF16 Math = "bf16"
)

// Maths returns the names of the modes.
func Maths() []string { return []string{string(Float32), string(TF32), string(BF16)} }

// Validate reports a mode that there is none of; "" is Float32.
func (m Math) Validate() error {
	if m != "" && !slices.Contains(Maths(), string(m)) {
		return fmt.Errorf("math %q must be one of: %s", m, strings.Join(Maths(), ", "))
	}
	return nil
}

// Rounding is how far rounding an operand moves it at most, as a share of it: 0 for Float32, whose operands
// stay as they are.
func (m Math) Rounding() float64 {
	switch m {
	case TF32:
		return 1. / (1 << 11)
	case BF16:
		return 1. / (1 << 8)
	}
	return 0
}
