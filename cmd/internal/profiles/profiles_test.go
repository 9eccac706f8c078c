package profiles_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"giantstream/cmd/internal/pipelinetest"
	"giantstream/cmd/internal/profiles"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

// Every profile is a valid part of a configuration, is found by its name, and names the page of its source. Files and
// names belong together.
func TestProfilesAreConfigurations(t *testing.T) {
	for _, p := range profiles.List() {
		found, err := profiles.Find(p.Name)
		if err != nil || found.Name != p.Name {
			t.Errorf("%s: %v, %v", p.Name, found, err)
		}
		c, err := p.ApplyTo(new(config.Default()))
		if err == nil {
			err = wiring.Check(&c)
		}
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if !strings.Contains(string(p.YAML()), p.Source) {
			t.Errorf("%s.yaml does not name %s", p.Name, p.Source)
		}
		for _, change := range config.Diff(new(config.Default()), &c) {
			if !strings.HasPrefix(change.Path, "ingest.") {
				t.Errorf("%s sets %s, which is no concern of an export", p.Name, change.Path)
			}
		}
	}
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.Contains(profiles.Names(), strings.TrimSuffix(name, ".yaml")) {
			t.Errorf("%s belongs to no profile", name)
		}
	}
	if _, err := profiles.Find("shopfy"); err == nil || !strings.Contains(err.Error(), "did you mean shopify?") {
		t.Error(err)
	}
}

// Records as each export has them become what testdata says.
func TestProfilesMapTheirExports(t *testing.T) {
	for _, name := range profiles.Names() {
		path := filepath.Join("testdata", name+".test.yaml")
		if _, err := os.Stat(path); err != nil {
			t.Errorf("no test of %s: %v", name, err)
			continue
		}
		f, err := pipelinetest.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Profile != name {
			t.Errorf("%s tests %s", path, f.Profile)
		}
		results, err := pipelinetest.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			for _, d := range r.Differences {
				t.Errorf("%s: %s:\n- %s\n+ %s", name, r.Name, d.Want, d.Got)
			}
		}
	}
}
