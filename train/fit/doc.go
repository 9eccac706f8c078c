// Package fit trains the encoders of a generation from its fitted artifacts:
// the one place that knows both what featurize makes and what each encoder
// needs.
//
//	in := fit.Inputs{…}                        // from featurize, for the same graph
//	lin, report, err := fit.Linear(ctx, in, linear.Options{}, progress)
//	enc, report, err := fit.Bag(ctx, in, bag.Options{}, bag.Checkpoints{}, progress)
package fit
