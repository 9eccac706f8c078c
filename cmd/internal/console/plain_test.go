package console

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"red pen, 5\" é 漢字 \U0001f600": "red pen, 5\" é 漢字 \U0001f600",
		"\x1b[2Ja\n\tb\x7f":            `\x1b[2Ja\x0a\x09b\x7f`,
		"\u009b31m":                    `\u009b31m`,
		"a\u202eb\u2066c\u200fd\u061c": `a\u202eb\u2066c\u200fd\u061c`,
		"a\u2028b\u2029":               `a\u2028b\u2029`,
		"\xff\xc3(\ufffd":              `\xff\xc3(` + "\ufffd",
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := PlainLines("a\x1b\n\tb\u202e"), "a\\x1b\n\tb\\u202e"; got != want {
		t.Errorf("PlainLines gave %q, want %q", got, want)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b\u0085\u2028\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, obeyed) {
			t.Fatalf("%q became %q", s, got)
		}
		if Plain(got) != got {
			t.Fatalf("%q changes again", got)
		}
	})
}
