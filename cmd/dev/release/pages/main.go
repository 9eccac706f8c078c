// Command pages writes what a release holds beside the program: manual pages, completions for shells, the example of a
// configuration, and the modules that the program is made of (CycloneDX).
//
//	go run ./cmd/dev/release/pages DIR VERSION
//
// The modules are those of DIR/linux-amd64/giantstream.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"giantstream/cmd/internal/cli"
	"giantstream/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: pages DIR VERSION")
	}
	dir := args[0]
	man, completion := filepath.Join(dir, "man"), filepath.Join(dir, "completion")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completion, 0o755)); err != nil {
		return err
	}
	root := cli.Commands()
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: "giantstream " + args[1], Manual: "giantstream"}
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date := time.Unix(seconds, 0).UTC()
		header.Date = &date
	}
	if err := doc.GenManTree(root, &header, man); err != nil {
		return err
	}
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completion, "giantstream.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completion, "_giantstream")),
		root.GenFishCompletionFile(filepath.Join(completion, "giantstream.fish"), true),
		os.WriteFile(filepath.Join(dir, "giantstream.yaml"), config.Example(), 0o644), //nolint:gosec // all may read it
		writeModules(filepath.Join(dir, "linux-amd64", "giantstream"), args[1],
			filepath.Join(dir, "giantstream.cdx.json")),
	)
}

// component is a part of a program in CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json/).
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

// writeModules lists what the Go toolchain has noted in a program.
func writeModules(program, version, to string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []component{{"library", "std", goVersion, "pkg:golang/std@" + goVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, component{"library", m.Path, m.Version,
			"pkg:golang/" + m.Path + "@" + m.Version})
	}
	data, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"component": component{Type: "application", Name: "giantstream", Version: version},
		},
		"components": components,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(data, '\n'), 0o644) //nolint:gosec // all may read it
}
