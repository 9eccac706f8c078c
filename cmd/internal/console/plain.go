package console

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns text from outside (a record, a file's name, a class) for one line of output. It
// escapes, as Go writes them in a string, the characters that a terminal obeys instead of showing:
// controls (C0 and C1, so newlines and tabs too), those that reorder text (bidi), and line and
// paragraph separators, and bytes that are not UTF-8.
func Plain(s string) string {
	clean := true
	for _, r := range s {
		clean = clean && r != utf8.RuneError && !obeyed(r)
	}
	if clean {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1 || obeyed(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// PlainLines is Plain for text of several lines, such as an error of ours: its newlines and tabs
// stay.
func PlainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = Plain(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
