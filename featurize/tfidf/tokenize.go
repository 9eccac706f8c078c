package tfidf

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// asciiWord returns the lower-case form of an ASCII byte inside a word of the
// default profile, or 0 if it separates words.
func asciiWord(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return 0
}

// scanner walks over the words of a text. The word it returns is valid until
// the next call.
type scanner struct {
	profile Profile
	text    string
	word    []byte
}

// begin starts on a text.
func (s *scanner) begin(text string) {
	if s.profile == Default && !ascii(text) && !norm.NFKC.IsNormalString(text) {
		text = norm.NFKC.String(text)
	}
	s.text = text
}

// ascii looks at eight bytes at a time: nearly all texts of many catalogs are ASCII.
func ascii(text string) bool {
	for len(text) >= 8 {
		if (text[0]|text[1]|text[2]|text[3]|text[4]|text[5]|text[6]|text[7])&utf8.RuneSelf != 0 {
			return false
		}
		text = text[8:]
	}
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// next returns the next word, nil at the end of the text.
func (s *scanner) next() []byte {
	if s.profile == PECOS {
		return s.nextSpaced()
	}
	w := s.word[:0]
	text := s.text
	i := 0
scan:
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			if c = asciiWord(c); c != 0 {
				w = append(w, c)
				continue
			}
		} else {
			r, n := utf8.DecodeRuneInString(text[i:])
			if s.profile == Default && unsegmented(r) {
				if len(w) > 0 {
					break scan // the word before it ends here
				}
				return s.nextPiece(text[i:])
			}
			i += n
			if inWord(r) {
				w = utf8.AppendRune(w, unicode.ToLower(r))
				continue
			}
		}
		if len(w) > 0 {
			break scan
		}
	}
	s.text, s.word = text[i:], w
	if len(w) == 0 {
		return nil
	}
	return w
}

// inWord reports whether a non-ASCII rune belongs to a word. Marks do: many
// scripts write vowels with them. Invalid UTF-8 decodes to U+FFFD, which
// separates.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)
}

func (s *scanner) nextSpaced() []byte {
	text := s.text
	i := 0
	for i < len(text) && text[i] == ' ' {
		i++
	}
	j := i
	for j < len(text) && text[j] != ' ' {
		j++
	}
	s.word = append(s.word[:0], text[i:j]...)
	s.text = text[j:]
	if i == j {
		return nil
	}
	return s.word
}

// nextPiece returns the next word of a text that begins inside a run of characters of a script
// without spaces.
func (s *scanner) nextPiece(text string) []byte {
	first := character(text)
	end := first
	for range pieceSize(text) - 1 {
		end += character(text[end:])
	}
	s.word = append(s.word[:0], text[:end]...)
	s.text = text[first:]
	if character(text[end:]) == 0 {
		s.text = text[end:] // the run ends here
	}
	return s.word
}

const runeBits = 21 // a rune is at most 0x10FFFF

// appendChar3 appends the keys of the three-character runs of " word ". A key
// packs three runes, first one highest, so keys sort as the strings do.
func appendChar3(dst []uint64, word []byte) []uint64 {
	const mask = 1<<(3*runeBits) - 1
	key := uint64(' ')
	n := 1
	for i := 0; i < len(word); {
		r, size := rune(word[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(word[i:])
		}
		i += size
		key = (key<<runeBits | uint64(r)) & mask
		if n++; n >= 3 {
			dst = append(dst, key)
		}
	}
	return append(dst, (key<<runeBits|' ')&mask)
}

// appendRuns appends the keys of a word's character runs.
func (p Profile) appendRuns(dst []uint64, word []byte) []uint64 {
	if p == Default && len(word) > 0 && word[0] >= firstUnsegmentedByte {
		if r, _ := utf8.DecodeRune(word); unsegmented(r) {
			return appendPieceRuns(dst, word)
		}
	}
	return appendChar3(dst, word)
}

func char3String(key uint64) string {
	const mask = 1<<runeBits - 1
	return string([]rune{rune(key >> (2 * runeBits)), rune(key >> runeBits & mask), rune(key & mask)})
}

// pairKey is the key of two neighbouring words.
func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }
