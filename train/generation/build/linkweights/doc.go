// Package linkweights has the stage that weighs the kinds of links by a sample of them (package relations), in plans
// with weights.
package linkweights
