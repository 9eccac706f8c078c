// Command typecheck checks that the packages of modules compile, their tests too, without compiling them: it parses
// and type-checks the packages that lie in the repository, and reads what they import from elsewhere from the build
// cache. Where go vet compiles every package that depends on a changed one, this takes a few seconds, so that every
// commit of a series can be checked.
//
//	go run ./cmd/dev/typecheck [-root FOLDER] [-commits "COMMIT…"] [MODULE…]
//
// MODULE is the folder of a module, the current one by default. Packages below -root, the first MODULE by default, are
// checked from their source, those that a MODULE replaces by a folder there included. With -commits, each of them is
// checked out in -root, a work tree that nobody else uses. Of the second and later ones only packages are checked that
// the commit has changed, and those that import these.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", "", "check the packages below this folder from their source (default the first MODULE)")
	commits := flag.String("commits", "", "check these commits, one after the other, in the work tree -root")
	flag.Parse()
	modules := flag.Args()
	if len(modules) == 0 {
		modules = []string{"."}
	}
	if *root == "" {
		*root = modules[0]
	}
	if err := run(*root, strings.Fields(*commits), modules); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the modules as they are, or as each of the commits has them.
func run(root string, commits, modules []string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	var checkers []*checker
	for _, module := range modules {
		checkers = append(checkers, newChecker(root, module))
	}
	if len(commits) == 0 {
		return checkAll(checkers)
	}
	var failed []error
	compiles := "" // the commit before, unless it does not compile
	for _, commit := range commits {
		if compiles != "" {
			if same, err := onlyText(root, compiles, commit); err != nil {
				return err
			} else if same {
				continue
			}
		}
		if _, err := git(root, "checkout", "--quiet", commit); err != nil {
			return err
		}
		compiles = commit
		if err := checkAll(checkers); err != nil {
			compiles = ""
			name, gitErr := git(root, "log", "-1", "--format=%h %s")
			failed = append(failed, fmt.Errorf("%s: does not compile\n%w", strings.TrimSpace(name), err), gitErr)
		}
	}
	return errors.Join(failed...)
}

func checkAll(checkers []*checker) error {
	var failed []error
	for _, c := range checkers {
		if _, err := os.Stat(filepath.Join(c.module, "go.mod")); err == nil { // else the commit has no such module yet
			failed = append(failed, c.check())
		}
	}
	return errors.Join(failed...)
}

// onlyText reports whether what has changed between two commits are files that no package is made of. A file that is
// gone may have been embedded.
func onlyText(root, before, after string) (bool, error) {
	changes, err := git(root, "diff", "--no-renames", "--name-status", before, after)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(changes) {
		status, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch filepath.Ext(strings.Trim(name, `"`)) {
		case ".go", ".mod", ".sum":
			return false, nil
		}
		if status == "D" {
			return false, nil
		}
	}
	return true, nil
}

func git(root string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "git", append([]string{"-C", root}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}
