package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pkg is one public package: its documentation and what is needed to resolve the names in it.
type pkg struct {
	*doc.Package
	fset *token.FileSet
	// imports maps, for each file, the name of an import to its path. Names are resolved file by
	// file, as the language does.
	imports map[string][]importSpec
}

type importSpec struct{ name, path string } // name is "" unless the import renames

// load reads the public packages below src, ascending by import path.
func load(src string) ([]*pkg, error) {
	// A fixed target, without experiments, keeps the output the same on every machine.
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", "amd64", false
	target.ToolTags = nil

	var packages []*pkg
	err := filepath.WalkDir(src, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(src, dir)
		if err != nil {
			return err
		}
		importPath := filepath.ToSlash(rel)
		if importPath == "." {
			return nil
		}
		if hidden(importPath) {
			return filepath.SkipDir
		}
		p, err := loadPackage(&target, dir, importPath)
		if err != nil {
			return fmt.Errorf("package %s: %w", importPath, err)
		}
		if p != nil {
			packages = append(packages, p)
		}
		return nil
	})
	if err == nil && len(packages) == 0 {
		err = fmt.Errorf("no public package below %s", src)
	}
	return packages, err
}

// hidden reports whether no program outside the tree can import the package or anything below it.
func hidden(importPath string) bool {
	switch importPath {
	case "cmd", "vendor", "builtin":
		return true
	}
	base := path.Base(importPath)
	return base == "internal" || base == "testdata" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".")
}

// loadPackage parses the files of one directory that belong to the target; it returns nil where
// there are none, or only a command.
func loadPackage(target *build.Context, dir, importPath string) (*pkg, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &pkg{fset: token.NewFileSet(), imports: map[string][]importSpec{}}
	var files []*ast.File
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if ok, err := target.MatchFile(dir, e.Name()); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		file, err := parser.ParseFile(p.fset, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if file.Name.Name == "main" {
			return nil, nil
		}
		files = append(files, file)
		name := p.fset.Position(file.Pos()).Filename
		for _, spec := range file.Imports {
			s := importSpec{path: strings.Trim(spec.Path.Value, "`\"")}
			if spec.Name != nil {
				s.name = spec.Name.Name
			}
			p.imports[name] = append(p.imports[name], s)
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	p.Package, err = doc.NewFromFiles(p.fset, files, importPath)
	return p, err
}
