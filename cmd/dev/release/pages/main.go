// Command pages writes what packages hold beside the program: manual pages, completions for shells, and the example
// of a configuration.
//
//	go run ./cmd/dev/release/pages DIR VERSION
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
	)
}
