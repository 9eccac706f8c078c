// Package wordpiece turns text into the token ids of a BERT vocabulary.
//
//	t, err := wordpiece.Load(os.DirFS("all-MiniLM-L6-v2"))
//	ids = t.Encode(text, 128, ids[:0]) // [CLS] … [SEP], at most 128
//
// Ids equal those of the reference, Hugging Face's tokenizers library
// (BertNormalizer, BertPreTokenizer, WordPiece, and special tokens recognised
// when they are spelled out in the text). The steps:
//
//  1. Clean: control, format and private-use characters, NUL and U+FFFD go
//     away; every white space becomes a space. Invalid UTF-8 reads as U+FFFD.
//  2. Spaces around each CJK ideograph, unless the tokenizer is set not to.
//  3. Uncased: canonical decomposition (NFD) without its nonspacing marks, so
//     that é is e; then lower case, character by character.
//  4. Words end at spaces; each punctuation character is a word of its own.
//  5. WordPiece: the longest piece of the vocabulary that starts the word,
//     then the longest "##" piece that continues it, and so forth. A word that
//     cannot be covered, or of more than 100 characters, is one [UNK].
//
// The classes of characters are those of Go's Unicode tables; the reference mixes older and newer
// ones. Compared character by character, the two agree on all of Unicode except some 500 characters
// of rare scripts, which were encoded or reclassified between the versions.
//
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding" (2019); Wu et al., "Google's Neural Machine
// Translation System" (2016), for the pieces.
package wordpiece
