// Command typecheck checks that the packages of a module compile, their tests too, without compiling them: it parses
// and type-checks the packages that lie in the repository, and reads what they import from elsewhere from the build
// cache. Where go vet compiles every package that depends on a changed one, this takes a few seconds, so that every
// commit of a series can be checked.
//
//	go run ./cmd/dev/typecheck [-root FOLDER] [MODULE]
//
// MODULE is the folder of a module, the current one by default. Packages below -root, MODULE by default, are checked
// from their source, those that MODULE replaces by a folder there included.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

func main() {
	root := flag.String("root", "", "check the packages below this folder from their source (default MODULE)")
	flag.Parse()
	module := "."
	if flag.NArg() > 0 {
		module = flag.Arg(0)
	}
	if *root == "" {
		*root = module
	}
	if err := run(*root, module); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listed is a package as go list has it. Of a package that tests add files to, or that depends on one, there is a
// variant for these tests, "path [tested.test]".
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	Imports                 []string
	ImportMap               map[string]string // from the paths in the source to those of variants
	Error                   *struct{ Err string }

	types  *types.Package // nil where it does not compile
	spoilt bool           // because of something that it imports
	done   chan struct{}
}

func run(root, module string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	all, err := list(module, "-deps", "-test", "./...")
	if err != nil {
		return err
	}
	c := checker{fset: token.NewFileSet(), ours: map[string]*listed{}, exports: map[string]string{}}
	imported := map[string]bool{}
	for _, p := range all {
		if strings.HasPrefix(p.Dir, root+string(filepath.Separator)) && !strings.HasSuffix(p.ImportPath, ".test") {
			c.ours[p.ImportPath] = p
			for _, path := range p.Imports {
				imported[path] = true
			}
		}
	}
	maps.DeleteFunc(imported, func(path string, _ bool) bool {
		return c.ours[path] != nil || path == "unsafe" || path == "C"
	})
	elsewhere, err := list(module, append([]string{"-export"}, slices.Sorted(maps.Keys(imported))...)...)
	if err != nil {
		return err
	}
	for _, p := range elsewhere {
		c.exports[p.ImportPath] = p.Export
	}
	c.gc = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.exports[path])
	})
	return c.check(all)
}

// list runs go list, which gives packages after those that they import.
func list(module string, args ...string) (all []*listed, err error) {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"list", "-trimpath",
		"-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Imports,ImportMap,Error"}, args...)...)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{done: make(chan struct{})}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		if p.Error != nil {
			return nil, errors.New(p.Error.Err)
		}
		all = append(all, p)
	}
}

type checker struct {
	fset    *token.FileSet
	ours    map[string]*listed
	exports map[string]string // of packages elsewhere, the files of their types
	mu      sync.Mutex        // gc serves one at a time
	gc      types.Importer
}

// check checks our packages, each once those are done that it imports.
func (c *checker) check(all []*listed) error {
	g := errgroup.Group{}
	g.SetLimit(runtime.GOMAXPROCS(0)) // a package waits for earlier ones alone, so none waits for ever
	var failed []error
	for _, p := range all {
		if c.ours[p.ImportPath] == nil {
			continue
		}
		g.Go(func() error {
			defer close(p.done)
			if err := c.checkPackage(p); err != nil && !p.spoilt {
				c.mu.Lock()
				defer c.mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	return errors.Join(g.Wait(), errors.Join(failed...))
}

func (c *checker) checkPackage(p *listed) (err error) {
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	config := types.Config{FakeImportC: true, Importer: importFunc(func(path string) (*types.Package, error) {
		return c.importFor(p, path)
	})}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	checked, err := config.Check(path, c.fset, files, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", p.ImportPath, err)
	}
	p.types = checked
	return nil
}

func (c *checker) importFor(by *listed, path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if variant, ok := by.ImportMap[path]; ok {
		path = variant
	}
	if p := c.ours[path]; p != nil {
		if <-p.done; p.types == nil {
			by.spoilt = true
			return nil, fmt.Errorf("%s does not compile", path)
		}
		return p.types, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gc.Import(path)
}

type importFunc func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }
