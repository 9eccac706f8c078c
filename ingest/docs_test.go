package ingest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"giantstream/ingest/decode"
)

// TestCodesAreDocumented keeps the format page and the program together.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/format/dead-letters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range decode.Codes() {
		if row := fmt.Sprintf("| `%s` | %s |", c, c.Explain()); !strings.Contains(string(page), row) {
			t.Errorf("docs/format/dead-letters.md lacks the row\n%s", row)
		}
	}
}
