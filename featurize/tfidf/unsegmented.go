package tfidf

import (
	"unicode"
	"unicode/utf8"
)

// Some scripts put no spaces between words. The runs of their characters are taken apart into words
// of two (Han, as search engines do) or three neighbouring characters, which overlap. Pairs of
// neighbouring words then are one character more in a row.

// scripts are the scripts without spaces.
var scripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar}

const (
	// firstUnsegmented is the first code point of any of the scripts, in Thai;
	// firstUnsegmentedByte begins its UTF-8.
	firstUnsegmented     = 0x0E00
	firstUnsegmentedByte = 0xE0
	// prolonged is the sign for a long vowel in Katakana and Hiragana, which Unicode counts to
	// neither.
	prolonged = 'ー'
)

// unsegmented says whether a rune belongs to a run without spaces. Digits do not: they are words.
func unsegmented(r rune) bool {
	switch {
	case r < firstUnsegmented, 0x10A0 <= r && r < 0x1780, 0x1A00 <= r && r < 0x2E80:
		return false // other scripts and punctuation, for speed
	case 0xAC00 <= r && r <= 0xD7A3:
		return false // Hangul has spaces
	case 0x4E00 <= r && r <= 0x9FFF, r == prolonged:
		return true
	}
	return unicode.In(r, scripts...) && inWord(r) && !unicode.IsDigit(r)
}

// maxMarks bounds the marks of one character; more begin the next one.
const maxMarks = 8

// character returns the length of the character that a text begins with: a letter and the marks
// on it. It returns 0 where a run without spaces ends. Khmer and Myanmar write a consonant below
// another, which is part of the character, by a sign between the two.
func character(text string) (size int) {
	const coeng, virama = 0x17D2, 0x1039
	last := rune(0)
	for marks := 0; size < len(text); marks++ {
		r, n := utf8.DecodeRuneInString(text[size:])
		switch {
		case size == 0:
			if !unsegmented(r) {
				return 0
			}
		case marks > maxMarks:
			return size
		case unicode.IsMark(r):
		case (last == coeng || last == virama) && unsegmented(r):
		default:
			return size
		}
		last = r
		size += n
	}
	return size
}

// pieceSize returns how many characters of a run are a word: two where a character means something
// by itself, three where it is a sound.
func pieceSize(text string) int {
	if r, _ := utf8.DecodeRuneInString(text); unicode.Is(unicode.Han, r) {
		return 2
	}
	return 3
}

// appendPieceRuns appends the keys of the character runs of a word of a script without spaces: every
// three of its code points in a row. The ends of such a word mean nothing, so they are not padded;
// a word of one or two code points is.
func appendPieceRuns(dst []uint64, word []byte) []uint64 {
	const mask = 1<<(2*runeBits) - 1
	n := min(3, max(2, utf8.RuneCount(word)))
	var key uint64 // of the last two code points
	for i := 0; len(word) > 0; i++ {
		r, size := utf8.DecodeRune(word)
		word = word[size:]
		switch {
		case i == 0 && len(word) == 0:
			dst = append(dst, ' '<<(2*runeBits)|uint64(r)<<runeBits|' ')
		case i >= 1 && n == 2:
			dst = append(dst, (key<<runeBits|uint64(r))<<runeBits&(1<<(3*runeBits)-1)|' ')
		case i >= 2:
			dst = append(dst, key<<runeBits|uint64(r))
		}
		key = (key<<runeBits | uint64(r)) & mask
	}
	return dst
}

// joined writes a pair of neighbouring words for people. Words of a script without spaces that
// overlap are written as the three characters that they are.
func joined(first, second string) string {
	n := character(first)
	if n > 0 && n < len(first) && len(second) > len(first)-n && second[:len(first)-n] == first[n:] {
		return first[:n] + second
	}
	return first + " " + second
}
