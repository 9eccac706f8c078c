package wordpiece

// Options says how text is normalised before it is cut into pieces.
type Options struct {
	// Lower folds case: the model is "uncased".
	Lower bool
	// StripAccents drops nonspacing marks. The reference does so by default
	// where it lower-cases.
	StripAccents bool
	// SpaceCJK makes each CJK ideograph a word of its own.
	SpaceCJK bool
	// MaxWordRunes is the length from which on a word is not looked up but
	// [UNK]: words may have up to this many characters.
	MaxWordRunes int
}

// Uncased returns the options of an uncased BERT.
func Uncased() Options {
	return Options{Lower: true, StripAccents: true, SpaceCJK: true, MaxWordRunes: 100}
}

// Cased returns the options of a cased BERT.
func Cased() Options { return Options{SpaceCJK: true, MaxWordRunes: 100} }
