package wordpiece

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// scratch is the memory of one normalization.
type scratch struct {
	clean, decomposed, folded []byte
}

// normalize returns text after steps 1 to 3 of the package documentation. The
// result is valid until the next call.
func (s *scratch) normalize(text string, o Options) []byte {
	ascii := s.tidy(text, o)
	if ascii || (!o.Lower && !o.StripAccents) {
		return s.clean
	}
	from := s.clean
	if o.StripAccents {
		s.decomposed = norm.NFD.Append(s.decomposed[:0], s.clean...)
		from = s.decomposed
	}
	s.fold(from, o)
	return s.folded
}

// tidy fills s.clean with text without control characters, with spaces for white space and around
// ideographs, and with ASCII in lower case. It reports whether all of the text is ASCII.
func (s *scratch) tidy(text string, o Options) (ascii bool) {
	s.clean = s.clean[:0]
	ascii = true
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case o.Lower && 'A' <= c && c <= 'Z':
				s.clean = append(s.clean, c+'a'-'A')
			case c > ' ' && c != 0x7f:
				s.clean = append(s.clean, c)
			case c == ' ' || c == '\t' || c == '\n' || c == '\r':
				s.clean = append(s.clean, ' ')
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		case unicode.IsSpace(r):
			s.clean = append(s.clean, ' ')
		case o.SpaceCJK && ideograph(r):
			ascii = false
			s.clean = append(utf8.AppendRune(append(s.clean, ' '), r), ' ')
		default:
			ascii = false
			s.clean = utf8.AppendRune(s.clean, r)
		}
	}
	return ascii
}

// fold fills s.folded with decomposed text, without marks and in lower case.
func (s *scratch) fold(from []byte, o Options) {
	s.folded = s.folded[:0]
	for i := 0; i < len(from); {
		if c := from[i]; c < utf8.RuneSelf {
			if o.Lower && 'A' <= c && c <= 'Z' { // the decomposition of É
				c += 'a' - 'A'
			}
			s.folded = append(s.folded, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(from[i:])
		i += size
		switch {
		case o.StripAccents && unicode.Is(unicode.Mn, r):
		case !o.Lower:
			s.folded = utf8.AppendRune(s.folded, r)
		case r == 'İ': // the one character whose lower case is two
			s.folded = append(s.folded, "i̇"...)
		default:
			s.folded = utf8.AppendRune(s.folded, unicode.ToLower(r))
		}
	}
}

// ideograph reports whether r is in a CJK Unified Ideographs block, by the
// list of the reference.
func ideograph(r rune) bool {
	return r >= 0x3400 && (0x4e00 <= r && r <= 0x9fff ||
		r <= 0x4dbf ||
		0xf900 <= r && r <= 0xfaff ||
		0x20000 <= r && r <= 0x2a6df ||
		0x2a700 <= r && r <= 0x2b73f ||
		0x2b740 <= r && r <= 0x2b81f ||
		0x2b920 <= r && r <= 0x2ceaf ||
		0x2f800 <= r && r <= 0x2fa1f)
}

// kind is what a character does to the word it stands in.
type kind uint8

const (
	letter kind = iota
	space
	punctuation
)

// kindAt classifies the first character of normalized text. In ASCII all that
// is neither letter nor digit counts as punctuation, "$" too.
func kindAt(text []byte) (k kind, size int) {
	c := text[0]
	switch {
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		return letter, 1
	case c == ' ':
		return space, 1
	case c < utf8.RuneSelf:
		return punctuation, 1
	}
	r, size := utf8.DecodeRune(text)
	switch {
	case unicode.IsPunct(r):
		return punctuation, size
	case unicode.IsSpace(r):
		return space, size
	}
	return letter, size
}
