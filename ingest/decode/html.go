package decode

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inline are the elements that stand inside a line: their tags separate no words. All others are
// taken for blocks.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.Abbr: true, atom.Acronym: true, atom.B: true, atom.Bdi: true, atom.Bdo: true, atom.Big: true,
	atom.Cite: true, atom.Code: true, atom.Data: true, atom.Del: true, atom.Dfn: true, atom.Em: true, atom.Font: true,
	atom.I: true, atom.Ins: true, atom.Kbd: true, atom.Label: true, atom.Mark: true, atom.Q: true, atom.Ruby: true,
	atom.S: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strike: true, atom.Strong: true,
	atom.Sub: true, atom.Sup: true, atom.Time: true, atom.Tt: true, atom.U: true, atom.Var: true, atom.Wbr: true,
}

// appendStripped appends a piece of HTML without its markup: tags and comments, and what scripts and
// styles hold. Entities are decoded once. A block's tag is a space, and so is a run of white space.
// Whatever is no tag of an element that HTML knows stays: "x < y", "<joe@example.org>". A tag that
// the end cuts off is dropped. The result is valid UTF-8 and has at most three times the bytes of src.
func appendStripped(dst, src []byte) []byte {
	from := len(dst)
	text := func(b []byte) {
		for len(b) > 0 {
			r, n := utf8.DecodeRune(b)
			b = b[n:]
			switch {
			case !unicode.IsSpace(r):
				dst = utf8.AppendRune(dst, r)
			case len(dst) > from && dst[len(dst)-1] != ' ':
				dst = append(dst, ' ')
			}
		}
	}
	z := html.NewTokenizer(bytes.NewReader(src))
	hidden := atom.Atom(0) // the script or style that we are in
	for {
		kind := z.Next()
		raw := z.Raw()
		if kind == html.TextToken {
			if hidden == 0 {
				text(z.Text())
			}
			continue
		}
		if kind == html.ErrorToken { // the end, perhaps inside a tag
			if hidden == 0 && element(raw) == 0 && !bytes.HasPrefix(raw, []byte("<!")) {
				text([]byte(html.UnescapeString(string(raw))))
			}
			return dst[:trimmed(dst, from)]
		}
		if kind == html.CommentToken || kind == html.DoctypeToken {
			continue
		}
		// Raw is valid until the next call.
		name := element(raw)
		switch {
		case name == 0:
			text([]byte(html.UnescapeString(string(raw))))
		case kind == html.StartTagToken && (name == atom.Script || name == atom.Style):
			hidden = name
			text([]byte(" "))
		case name == hidden:
			hidden = 0
		case !inline[name]:
			text([]byte(" "))
		}
	}
}

// trimmed is the length of dst without spaces at its end, but at least from.
func trimmed(dst []byte, from int) int {
	n := len(dst)
	for n > from && dst[n-1] == ' ' {
		n--
	}
	return n
}

// element returns the element that a tag is of. Names with a hyphen or a colon, which pages and word
// processors make up, count as spans. It is 0 for what is no tag.
func element(tag []byte) atom.Atom {
	if len(tag) == 0 || tag[0] != '<' {
		return 0
	}
	name := bytes.TrimPrefix(tag[1:], []byte("/"))
	end := bytes.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == '>' })
	if end >= 0 {
		name = name[:end]
	}
	if len(name) == 0 || len(name) > 64 || name[0] > 'z' || !unicode.IsLetter(rune(name[0])) {
		return 0
	}
	name = bytes.ToLower(name)
	if a := atom.Lookup(name); a != 0 {
		return a
	}
	if bytes.ContainsAny(name, "-:") && !bytes.ContainsAny(name, "@.") {
		return atom.Span
	}
	return 0
}
