package commitlog

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Whoever upgrades reads there which release can still read the store.
func TestOperationsNamesTheFormats(t *testing.T) {
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, want := range []string{
		fmt.Sprintf("It writes manifests of format %d,", ManifestFormat),
		fmt.Sprintf("`pipeline.json` of format %d,", identityFormat),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the section Upgrade of docs/OPERATIONS.md lacks %q", want)
		}
	}
}
