package importlaw

import (
	"regexp"
	"strings"
	"testing"
)

const failures = "## What to do when something fails"

// composed are messages that no literal has as a whole.
var composed = map[string]bool{"the external model fails, trying again until it succeeds": true}

var (
	quotedPattern = regexp.MustCompile("`([^`]+)`")
	// variablePattern is what stands on the page for what differs: … and names such as TOPIC or N.
	variablePattern = regexp.MustCompile(`…|: |\b[A-Z]+\b|\d+`)
	joinPattern     = regexp.MustCompile(`"\s*\+\s*\n\s*"`) // of the parts of a long literal
)

// TestPageQuotesMessages: the messages by which OPERATIONS.md says what to do are messages of the program.
func TestPageQuotesMessages(t *testing.T) {
	_, section, found := strings.Cut(read(t, root+"/docs/OPERATIONS.md"), failures)
	if !found {
		t.Fatalf("the page has no section %q", failures)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	code, quoted := productCode(t), 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, q := range quotedPattern.FindAllStringSubmatch(cells[1], -1) {
			for _, part := range variablePattern.Split(q[1], -1) {
				part = strings.Trim(part, " ,:")
				if len(part) < 9 || composed[q[1]] {
					continue
				}
				if quoted++; !strings.Contains(code, part) {
					t.Errorf("no message has %q, of `%s`", part, q[1])
				}
			}
		}
	}
	if quoted < 25 {
		t.Errorf("%d messages are quoted", quoted)
	}
}

// productCode is all code without tests, with the parts of long literals joined.
func productCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	eachFile(t, ".go", func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			code.WriteString(read(t, path))
		}
	})
	return strings.ReplaceAll(joinPattern.ReplaceAllString(code.String(), ""), `\"`, `"`)
}
