package decode

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestStripHTML(t *testing.T) {
	for html, want := range map[string]string{
		"plain text":                                     "plain text",
		"<p>One</p><p>two</p>":                           "One two",
		"a<b>bold</b>er <i>claim</i>":                    "abolder claim",
		"line<br>break<BR/>again":                        "line break again",
		"<ul><li>red<li>blue</ul>":                       "red blue",
		"x<!-- a comment with <b> -->y":                  "xy",
		"<script>if (a<b) alert('</p>')</script>after":   "after",
		"<style>p { color: red }</style> styled":         "styled",
		"<script>never closed":                           "",
		"AT&amp;T &lt;3 &eacute;t&#233; &nbsp; &#x4E2D;": "AT&T <3 été 中",
		"5 < 6 and x<y or z>w":                           "5 < 6 and x<y or z>w",
		"mail <joe@example.org> now":                     "mail <joe@example.org> now",
		"cut off <a href='http://exa":                    "cut off",
		"cut off <!-- comm":                              "cut off",
		`<td class="a>b" title='<p>'>cell</td>`:          "cell",
		"<o:p>word</o:p><my-tag a=1>processor</my-tag>":  "wordprocessor",
		"</p></div>closed <p <b>twice":                   "closed twice",
		"<!DOCTYPE html><html><body>page</body></html>":  "page",
		"<img src=x onerror=alert(1)>picture":            "picture",
		"&unknown; &amp &#0; &#xD800;":                   "&unknown; & \uFFFD \uFFFD",
		"<p></p>":                                        "",
		"tabs\tand\n\n newlines":                         "tabs and newlines",
		"":                                               "",
	} {
		if got := string(appendStripped(nil, []byte(html))); got != want {
			t.Errorf("%q: %q, want %q", html, got, want)
		}
	}
}

func TestStripHTMLOfARecord(t *testing.T) {
	m := NodeMapping{ID: "id", Text: []string{"title", "body"}, StripHTML: true}
	d, err := Nodes(m, Limits{RecordBytes: 1 << 20, TextBytes: 40, EdgesPerRecord: 10}, 1)
	if err != nil {
		t.Fatal(err)
	}
	value := `{"id":"a","title":"<b>Red & blue</b>","body":["<p>\u003cp\u003eone</p>","<br>","two` +
		strings.Repeat("<p>", 50) + `"]}`
	got, fault := d.Decode(Record{Key: []byte("a"), Value: []byte(value), Time: time.Unix(1, 0)}, nil)
	if fault != nil {
		t.Fatal(fault)
	}
	if want := "Red & blue\none\ntwo"; got[0].Text != want {
		t.Errorf("text %q, want %q", got[0].Text, want)
	}
}

func FuzzStripHTML(f *testing.F) {
	for _, s := range []string{"<p>a</p>", "<script>x</script>", "<!--", "<a b='c", "&#x4E2D;", "<x-y>", "<plaintext>a<b>",
		"<textarea><p>a", "<![CDATA[x]]>", "\x00<\x00>", "<svg><style><a>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return // decoders refuse it before
		}
		got := appendStripped([]byte("before"), []byte(s))
		rest, found := strings.CutPrefix(string(got), "before")
		if !found || !utf8.ValidString(rest) || len(rest) > 3*len(s) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
