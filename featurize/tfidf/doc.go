// Package tfidf is Ψ, the text vectorizer: raw text to a sparse, L2-normalized
// TF-IDF vector.
//
// Like GIANT (Chien et al., ICLR 2022) it puts three vectorizers
// side by side: single words, pairs of neighbouring words, and runs of three
// characters inside words (padded with a space at both ends). Each part is
// L2-normalized on its own, so that none drowns the others; the parts are
// concatenated and the whole is normalized again. The weight of a feature is
//
//	tf · idf,  idf = max(ln(N / (df+1)), 0)
//
// with tf the plain count, df the number of the N fitted documents that hold
// the feature. Features in more than MaxDF of the documents or in fewer than
// MinDF are left out; of the rest the most frequent are kept, up to the
// budget of their part, ties going to the n-gram that sorts last.
//
// The order of calls is NewFitter, AddAll any number of times, Fit, and then TransformAll of the
// Model; the package has an example.
//
// # Profiles
//
// profile.go has the table of profiles. Default: texts are brought to Unicode's normalization form
// KC; a word is a maximal run of Unicode letters, marks and numbers, lower-cased; everything else
// separates. Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Myanmar) are taken apart
// into overlapping words of two or three characters (unsegmented.go). Artifacts of version 1 have
// neither normalization nor such words. PECOS is what PECOS (pecos/core/utils/tfidf.hpp) computes
// when it fits: words are split at the ASCII space only and not lower-cased. PECOS itself
// transforms with other character runs than it fitted (it forgets the padding); here fitting and
// transforming share one code path in both profiles.
//
// # Following a stream
//
// A Model's vocabulary is frozen; TransformCounting returns how much of a text the vocabulary does
// not know. Document frequencies follow the texts from one generation to the next: a build
// (train/generation) adds all texts at its cut to a new Fitter, which is one fast pass.
//
// # Bounded memory
//
// Without a budget a Fitter takes about 40 bytes per distinct n-gram and worker, and Fit as much
// again. Options.MemoryBudget bounds both. When the memory is full, the rarer half of the n-grams
// is forgotten (lossy counting, see prune.go). A document frequency df is then counted as at least
// df − e and at most df. So every n-gram in e + MinDF documents or more stays a candidate. N-grams
// that were never forgotten, as frequent ones are not, are counted exactly.
//
// In a table of c n-grams into which M document frequencies were counted, e ≤ 2·M/c. Words that
// pairs keep in memory can push the e of words and pairs beyond this bound. A budget of B bytes
// holds B/512 character runs, B/128 pairs, and words of 3/8·B bytes at 112 bytes and 1.25 times
// their length.
//
// # Invariants
//
// A fit depends on the multiset of texts alone, not on their order, the number of
// workers or the calls they came in; under a memory budget on the order too. Feature
// ids are ordered by part, then ascending document frequency, then n-gram (words in
// byte order). A Model is immutable and safe for concurrent use. Transforming takes,
// besides the result, 4 bytes per feature and worker.
package tfidf
