// Package wide puts a table of n-grams beside a text encoder, and trains both at
// once:
//
//	h = p/‖p‖ + Σ_f Ψ(T)_f · E_f      Φ(T) = h / ‖h‖
//
// where p is what the encoder, a BERT, makes of the text, Ψ its TF-IDF and E_f the vector of
// n-gram f (package bag). The encoder knows what words mean; the table remembers
// exact ones, such as brands and model numbers, which a tokenizer shreds: "wide
// and deep" in the words of Cheng et al. (2016).
//
//	table, err := wide.Start(x, projection, weights, labelDim, net.Dim(), rows, 0)
//	report, err := task.Train(ctx, table, …)               // the table alone
//	tuner, err := wide.NewTuner(net, vectorizer, table, wide.Options{})
//	r, err := xrt.Train(ctx, tuner, …)                     // net and table
//	e, err := wide.New(deep, vectorizer, table)            // a train.Encoder
//
// # The table first
//
// The table starts where package bag's training does, at a linear solution: the ridge
// regression of the neighbourhoods' PIFA on the text's projection, whose numbers
// become the first ones of h. It is then trained alone, which takes a small part of the time
// of one pass of a transformer, and scaled so that its part of h is twice as long as the
// encoder's on average. What both say is at first a sum of unlike things; in
// 384 dimensions that disturbs little, and training sorts it out.
//
// # Both together
//
// Both parts get the same gradient. The table moves by row-wise Adagrad at a rate of
// its own, and of each text half of the n-grams are left out of a step, the others
// weighing twice as much.
//
// docs/MEASUREMENTS.md has what it is worth.
package wide
