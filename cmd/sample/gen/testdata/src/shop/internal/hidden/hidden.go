// Package hidden is not importable from outside.
package hidden

// Exported but hidden.
func Exported() {}
