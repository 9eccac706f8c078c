package importlaw

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDependencies compares docs/DEPENDENCIES.md with what the modules require directly. Of the module of the tests,
// the page lists what the program does not require.
func TestDependencies(t *testing.T) {
	page, err := os.ReadFile("../../docs/DEPENDENCIES.md")
	if err != nil {
		t.Fatal(err)
	}
	program, tests, ok := strings.Cut(string(page), "\n## The tests of the finished program\n")
	if !ok {
		t.Fatal("docs/DEPENDENCIES.md has no section about the tests of the finished program")
	}
	required, ofTests := requirements(t, "../.."), requirements(t, "../../cmd/e2e")
	maps.DeleteFunc(ofTests, func(module string, _ bool) bool { return required[module] || module == "giantstream" })
	for _, s := range []struct {
		file, text string
		required   map[string]bool
	}{{"go.mod", program, required}, {"cmd/e2e/go.mod", tests, ofTests}} {
		listed := map[string]bool{}
		for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]\S*\.\S+) \|`).FindAllStringSubmatch(s.text, -1) {
			listed[row[1]] = true
		}
		for _, module := range slices.Sorted(maps.Keys(s.required)) {
			if !listed[module] {
				t.Errorf("%s requires %s, and docs/DEPENDENCIES.md has no row for it", s.file, module)
			}
		}
		for _, module := range slices.Sorted(maps.Keys(listed)) {
			if !s.required[module] {
				t.Errorf("docs/DEPENDENCIES.md lists %s, which %s does not require directly", module, s.file)
			}
		}
	}
}

// requirements returns what a module requires directly.
func requirements(t *testing.T, dir string) map[string]bool {
	t.Helper()
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	edit.Dir = dir
	out, err := edit.Output()
	if err != nil {
		t.Fatalf("go mod edit in %s: %v", dir, err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, r := range file.Require {
		if !r.Indirect {
			direct[r.Path] = true
		}
	}
	return direct
}
