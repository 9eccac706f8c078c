package e2e_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The paper's table for a pipeline's graph: as text, as JSON and as a picture.
func TestAblation(t *testing.T) {
	t.Parallel()
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	place := []string{"-c", config, "--store", dir}
	h := newAuthor(10, 200).beginning()
	succeed(t, slices.Concat([]string{"run", "--until-idle"}, place, h.write(t, inputs))...)
	before := files(t, dir)

	picture := filepath.Join(inputs, "table.svg")
	ablation := slices.Concat([]string{"evaluate", "--ablation", "--splits", "2", "--holdout", "0.2"}, place)
	var table struct {
		Rows []struct {
			Row     string
			Runs    []struct{ Links struct{ Edges int } }
			Seconds []float64
		}
	}
	succeedJSON(t, &table, slices.Concat(ablation, []string{"--json", "--picture", picture})...)
	var rows []string
	for _, r := range table.Rows {
		rows = append(rows, r.Row)
		if len(r.Runs) != 2 || len(r.Seconds) != 2 || r.Runs[0].Links.Edges == 0 {
			t.Errorf("row %+v, want two runs with links", r)
		}
	}
	want := []string{"text", "link prediction", "neighbourhoods, random", "neighbourhoods, text",
		"neighbourhoods, pifa-identity", "neighbourhoods, pifa"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}

	data, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	words := texts(t, string(data))
	// From files the table is the same, with the settings of the configuration.
	out := succeed(t, slices.Concat([]string{"evaluate", "--ablation", "--splits", "1", "--holdout", "0.2", "-c",
		config}, h.write(t, inputs))...)
	for _, row := range want {
		if !strings.Contains(out, row) || !strings.Contains(words, row) {
			t.Errorf("the row %q is missing from the table or the picture:\n%s\n%s", row, out, words)
		}
	}
	if after := files(t, dir); !slices.Equal(after, before) {
		t.Errorf("the store holds %q, before %q", after, before)
	}
}

// files lists what a directory holds.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// texts are the words of a well-formed XML document.
func texts(t *testing.T, document string) string {
	t.Helper()
	var b strings.Builder
	for d := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			b.Write(c)
			b.WriteByte('\n')
		}
	}
}
