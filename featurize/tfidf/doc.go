// Package tfidf is Ψ, the text vectorizer: raw text to a sparse, L2-normalised
// TF-IDF vector.
//
// Like GIANT (Chien et al., ICLR 2022) it puts three vectorizers
// side by side: single words, pairs of neighbouring words, and runs of three
// characters inside words (padded with a space at both ends). Each part is
// L2-normalised on its own, so that none drowns the others; the parts are
// concatenated and the whole is normalised again. The weight of a feature is
//
//	tf · idf,  idf = max(ln(N / (df+1)), 0)
//
// with tf the plain count, df the number of the N fitted documents that hold
// the feature. Features in more than MaxDF of the documents or in fewer than
// MinDF are left out; of the rest the most frequent are kept, up to the
// budget of their part, ties going to the n-gram that sorts last.
//
// # Order of calls
//
//	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
//	f.AddAll(texts, workers)   // any number of times
//	m, err := f.Fit()
//	x := m.TransformAll(texts, workers)
//
// # Profiles
//
// Default: a word is a maximal run of Unicode letters, marks and numbers,
// lower-cased; everything else separates. PECOS: what PECOS
// (pecos/core/utils/tfidf.hpp) computes when it fits: words are split at the
// ASCII space only and not lower-cased. PECOS itself transforms with other
// character runs than it fitted (it forgets the padding); here fitting and
// transforming share one code path in both profiles.
//
// # Following a stream
//
// Document frequencies follow the texts: Add a new one, Remove a deleted one,
// both for a changed one. Merge adds up the counts of shards. Without a budget what
// comes out is, to the last bit, a fit of the texts that are left (stream_test.go). A Model's
// vocabulary is frozen; TransformCounting tells how much of a text it does not know.
//
// To Remove takes the text that was added. Who has all texts at hand need not remember the
// old ones: adding the new ones to a Fitter of their own is one fast pass. That is
// how a generation is built (train/generation): each one counts the texts at its cut afresh,
// and so follows every change since the last one exactly.
//
// # Bounded memory
//
// Without a budget a Fitter takes about 40 bytes per distinct n-gram and
// worker, and Fit as much again. Options.MemoryBudget bounds both: when the memory is
// full, the rarer half of the n-grams is forgotten (lossy counting, see prune.go). A
// document frequency df is then counted as at least df − e and at most df, and so every n-gram in
// e + MinDF documents or more stays a candidate; those that were never
// forgotten are counted exactly, as the frequent ones are. Undercount returns e, for each part. In
// a table of c n-grams into which M document frequencies were counted, e ≤ 2·M/c; words that pairs
// keep in memory can push the e of words and pairs beyond that. A budget of B bytes
// holds B/512 character runs, B/128 pairs, and words of 3/8·B bytes at 112 bytes and 1.25 times
// their length. Merged, errors add up.
//
// # Invariants
//
// A fit depends on the multiset of texts alone, not on their order, the number of
// workers or the calls they came in; under a memory budget on the order too. Feature
// ids are ordered by part, then ascending document frequency, then n-gram (words in
// byte order). A Model is immutable and safe for concurrent use. Transforming takes,
// besides the result, 4 bytes per feature and worker.
package tfidf
