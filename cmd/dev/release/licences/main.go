// Command licences prints the licences of what is in programs beside their own code: of Go, of the sample graph and of
// every module, with its notices. Licences ask for that wherever programs are given away.
//
//	go run ./cmd/dev/release/licences PROGRAM [PROGRAM]
package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(programs []string, w io.Writer) error {
	if len(programs) == 0 {
		return errors.New("usage: licences PROGRAM [PROGRAM]")
	}
	root, err := goCommand("env", "GOROOT")
	if err != nil {
		return err
	}
	var all texts
	if err := errors.Join(all.add("Go", filepath.Join(root, "LICENSE")),
		all.add("the sample graph", filepath.Join("cmd", "sample", "LICENSE"))); err != nil {
		return err
	}
	modules := map[string]*debug.Module{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			m = cmp.Or(m.Replace, m)
			modules[m.Path] = m
		}
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if err := all.addModule(modules[path]); err != nil {
			return err
		}
	}
	for _, text := range all.order {
		if _, err := fmt.Fprintf(w, "==== %s\n\n%s\n\n", strings.Join(all.of[text], ", "), text); err != nil {
			return err
		}
	}
	return nil
}

// texts are licences and notices, each once, with what they are of.
type texts struct {
	order []string
	of    map[string][]string
}

func (t *texts) add(of, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(data))
	if t.of == nil {
		t.of = map[string][]string{}
	}
	if t.of[text] == nil {
		t.order = append(t.order, text)
	}
	t.of[text] = append(t.of[text], of)
	return nil
}

// named are the files of a module that its users must pass on.
var named = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|copyright|patents)`)

func (t *texts) addModule(m *debug.Module) error {
	dir, err := goCommand("list", "-m", "-f", "{{.Dir}}", m.Path)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("module %s: %w", m.Path, err)
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !named.MatchString(e.Name()) {
			continue
		}
		found = true
		if err := t.add(m.Path+" "+m.Version, filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("module %s has no file that looks like a licence", m.Path)
	}
	return nil
}

func goCommand(args ...string) (string, error) {
	c := exec.CommandContext(context.Background(), "go", args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	return strings.TrimSpace(string(out)), err
}
