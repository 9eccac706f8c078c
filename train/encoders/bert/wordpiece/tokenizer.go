package wordpiece

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	continuation = "##"
	unknown      = "[UNK]"

	// window is how many bytes of a text are normalized at a time, so that a
	// long text costs no more than the part that is kept.
	window = 1 << 10
)

// special are the tokens that are recognised when a text spells them out.
var special = [...]string{"[PAD]", unknown, "[CLS]", "[SEP]", "[MASK]"}

// Tokenizer cuts text into the pieces of a vocabulary. It is safe for
// concurrent use.
type Tokenizer struct {
	options   Options
	vocab     []string         // by id
	words     map[string]int32 // pieces that start a word
	endings   map[string]int32 // pieces that go on, without "##"
	maxWord   int              // bytes of the longest of words
	maxEnding int

	special       map[string]int32
	unk, cls, sep int32

	scratch sync.Pool // *scratch
}

// New makes a tokenizer; vocab[i] is the piece with the id i. It must have
// [UNK], [CLS] and [SEP].
func New(vocab []string, o Options) (*Tokenizer, error) {
	t := &Tokenizer{
		options: o, vocab: slices.Clone(vocab),
		words: make(map[string]int32, len(vocab)), endings: map[string]int32{}, special: map[string]int32{},
	}
	for i, p := range vocab {
		// The last of equal pieces counts, as in the reference.
		t.words[p] = int32(i)
		t.maxWord = max(t.maxWord, len(p))
		if rest, ok := strings.CutPrefix(p, continuation); ok && rest != "" {
			t.endings[rest] = int32(i)
			t.maxEnding = max(t.maxEnding, len(rest))
		}
	}
	for _, s := range special {
		if id, ok := t.words[s]; ok {
			t.special[s] = id
		}
	}
	for name, id := range map[string]*int32{unknown: &t.unk, "[CLS]": &t.cls, "[SEP]": &t.sep} {
		var ok bool
		if *id, ok = t.special[name]; !ok {
			return nil, fmt.Errorf("%w: the vocabulary of %d pieces has no %s", ErrUnsupported, len(vocab), name)
		}
	}
	t.scratch.New = func() any { return new(scratch) }
	return t, nil
}

// Size returns the number of pieces; ids are below it.
func (t *Tokenizer) Size() int { return len(t.vocab) }

// Encode appends the ids of text to dst: [CLS], the text's pieces, [SEP]. It appends at most most
// ids, which is at least 2, and cuts the rest off the text's end.
func (t *Tokenizer) Encode(text string, most int, dst []int32) []int32 {
	s := t.scratch.Get().(*scratch)
	defer t.scratch.Put(s)
	end := len(dst) + most - 1 // where [SEP] goes at the latest
	dst = append(dst, t.cls)
	for text != "" && len(dst) < end {
		part := text[:cut(text)]
		text = text[len(part):]
		for part != "" && len(dst) < end {
			before, id := t.nextSpecial(part)
			dst = t.pieces(s.normalize(before, t.options), dst, end)
			part = part[len(before):]
			if part != "" && len(dst) < end {
				part = part[strings.IndexByte(part, ']')+1:]
				dst = append(dst, id)
			}
		}
	}
	return append(dst, t.sep)
}

// cut returns the length of a beginning of text that can be tokenized by
// itself: it ends at a space, or is all.
func cut(text string) int {
	if len(text) > window {
		if i := strings.LastIndexByte(text[:window], ' '); i > 0 {
			return i
		}
		if i := strings.IndexByte(text[window:], ' '); i >= 0 {
			return window + i
		}
	}
	return len(text)
}

// nextSpecial returns what precedes the first special token in text, all if
// there is none, and the token's id.
func (t *Tokenizer) nextSpecial(text string) (before string, id int32) {
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], '[')
		if i < 0 {
			return text, 0
		}
		at += i
		if end := strings.IndexByte(text[at:], ']'); end > 0 {
			if id, ok := t.special[text[at:at+end+1]]; ok {
				return text[:at], id
			}
		}
	}
}

// pieces splits normalized text into words and appends their pieces while
// dst is shorter than end.
func (t *Tokenizer) pieces(text []byte, dst []int32, end int) []int32 {
	for len(text) > 0 && len(dst) < end {
		n, runes := 0, 0
		for n < len(text) {
			k, size := kindAt(text[n:])
			if k == space || (k == punctuation && n > 0) {
				break
			}
			n += size
			runes++
			if k == punctuation {
				break
			}
		}
		if n == 0 { // a space
			text = text[1:]
			continue
		}
		dst = t.word(text[:n], runes, dst)
		text = text[n:]
	}
	return dst[:min(len(dst), end)]
}

// word appends the pieces of one word, longest first.
func (t *Tokenizer) word(w []byte, runes int, dst []int32) []int32 {
	if runes > t.options.MaxWordRunes {
		return append(dst, t.unk)
	}
	begin := len(dst)
	vocab, longest := t.words, t.maxWord
	for len(w) > 0 {
		n := min(len(w), longest)
		for n > 0 {
			if id, ok := vocab[string(w[:n])]; ok {
				dst = append(dst, id)
				break
			}
			// Next shorter beginning that ends between characters.
			for n--; n > 0 && !utf8.RuneStart(w[n]); n-- {
			}
		}
		if n == 0 {
			return append(dst[:begin], t.unk)
		}
		w = w[n:]
		vocab, longest = t.endings, t.maxEnding
	}
	return dst
}

// Options says how text is normalized before it is cut into pieces.
type Options struct {
	// Lower folds case: the model is "uncased".
	Lower bool
	// StripAccents drops nonspacing marks. The reference does so by default
	// where it lower-cases.
	StripAccents bool
	// SpaceCJK makes each CJK ideograph a word of its own.
	SpaceCJK bool
	// MaxWordRunes is the most characters that a word may have. A longer word is [UNK].
	MaxWordRunes int
}

// Uncased returns the options of an uncased BERT.
func Uncased() Options {
	return Options{Lower: true, StripAccents: true, SpaceCJK: true, MaxWordRunes: 100}
}
