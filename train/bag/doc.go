// Package bag is an encoder that trains on CPUs: every n-gram of the
// vectorizer has a vector, and a text's embedding is their sum, weighted by
// TF-IDF, scaled to length 1:
//
//	h = Σ_f Ψ(T)_f · E_f      Φ(T) = h / ‖h‖
//
// # Start
//
// The linear encoder is such a bag: with P the projection and W the ridge
// solution, E = P·W gives the same embeddings. Training starts there (or from
// small random vectors, InitRandom), the head of each cluster at the mean
// PIFA of its labels, so that the first prediction already makes sense.
//
// # Training
//
// Multi-resolution neighbourhood prediction (package xmc) on minibatches:
// each instance loses half of its n-grams at random, so that no single rare
// one can memorise its neighbours. Instances weigh by the root of their degree:
// those with more labels have less noisy targets, but hubs must not rule. The table moves
// by row-wise Adagrad (one accumulator per n-gram, which costs 1/Dim of the
// table instead of Adam's two tables), the heads by row-sparse Adam, the
// rates falling linearly to zero. Levels are trained jointly or one after the
// other (Schedule).
//
// # When to stop
//
// Some instances are held out: they stay labels but are never trained on.
// After each epoch the trainer asks whether their embeddings are nearer to
// their neighbours' than to those of nodes drawn by degree (the area under
// the curve), and keeps the best epoch's weights. Going level by level, this
// choice is the paper's choice of level D.
//
// # Determinism and resuming
//
// What is dropped depends on (seed, epoch, instance), the order of instances
// on (seed, epoch); gradients of an n-gram or cluster are summed in batch
// order by whichever goroutine has it. The same data, options and seed thus
// give the same bits on any number of cores. A State taken after any step
// holds everything that later steps depend on, so a resumed run ends with the
// same bits too.
// # Why these defaults
//
// Measured on the shared graphs: the AUC of held-out instances and of hidden
// edges (amazon-products, 10 % hidden, one split), the class probe at 10 % of
// the labels (debian-packages).
//
//	amazon-products, leaves of 24         hidden  held out
//	joint, linear start, scale 7          0.883   0.857
//	  scale 5 / 10 / 15                   0.882 / 0.878 / 0.866   0.858 / 0.851 / 0.842
//	  level by level (scale 10)           0.869   0.849
//	  random start (scale 10)             0.874   0.841
//	debian-packages (scale 5)             probe   held out
//	weights by degree, 131,072 rows       0.772   0.879
//	  by the root of the degree           0.770   0.886
//	  65,536 rows                         0.774   0.876
//	  leaves of 16 instead of 48          0.772   0.882
//
// With all of the defaults: hidden edges 0.882 ± 0.004 over five splits
// (linear 0.805, text alone 0.636), probe 0.775 (linear 0.716, text alone
// 0.701). go test -v ./train/fit with GIANTSTREAM_LONG=1 prints them.
package bag
