// Package train fits a generation: encoders, heads, evaluation, lifecycle.
package train
