package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	if r := run(t, "report", "--store", t.TempDir()); r.code != 1 || !strings.Contains(r.stderr, "no pipeline yet") {
		t.Errorf("without a pipeline: exit code %d\n%s", r.code, r.stderr)
	}
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	h := newAuthor(11, 100).beginning()
	place := []string{"-c", config, "--store", dir}
	succeed(t, slices.Concat([]string{"run", "--until-idle"}, place, h.write(t, inputs))...)

	out := t.TempDir()
	page := filepath.Join(out, "page.html")
	if says := succeed(t, slices.Concat([]string{"report", "-o", page}, place)...); strings.TrimSpace(says) != page {
		t.Errorf("report prints %q, want the file's name", says)
	}
	data, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(data), "<h1>Generation 1</h1>") {
		t.Errorf("the page is %.200q (%v)", data, err)
	}
	if files, err := os.ReadDir(out); err != nil || len(files) != 1 {
		t.Errorf("beside the page there is more: %v (%v)", files, err)
	}
	for _, wrong := range []struct {
		says string
		args []string
	}{
		{"there is no generation 7", []string{"report", "-g", "7"}},
		{"no-such-directory", []string{"report", "-o", filepath.Join(out, "no-such-directory", "page.html")}},
	} {
		if r := run(t, slices.Concat(wrong.args, place)...); r.code != 1 || !strings.Contains(r.stderr, wrong.says) {
			t.Errorf("%v: exit code %d\n%s", wrong.args, r.code, r.stderr)
		}
	}
}
