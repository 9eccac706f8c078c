package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"giantstream/config"
)

// Every configuration that a page shows is valid, as a part of a file or a whole one.
func TestPagesShowValidConfigurations(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	values := func(name string) (string, bool) {
		if strings.HasSuffix(name, "_URL") {
			return "postgres://user:password@host/database", true
		}
		return "value-of-" + name, true
	}
	shown := 0
	err := filepath.WalkDir("../docs", func(path string, d fs.DirEntry, err error) error {
		// Those of tests are no configurations, and those of measurements and decisions were valid then.
		if err != nil || d.Name() == "measurements" || d.Name() == "decisions" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" || filepath.Base(path) == "tests.md" {
			return nil
		}
		page, err := os.ReadFile(path)
		for _, m := range block.FindAllSubmatch(page, -1) {
			shown++
			if _, err := config.Parse(m[1], values); err != nil {
				t.Errorf("%s:\n%s%v", path, m[1], err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if shown < 10 {
		t.Errorf("%d configurations were found", shown)
	}
}
