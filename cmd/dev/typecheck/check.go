package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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

type digest [sha256.Size]byte

// listed is a package as go list has it. Of a package that tests add files to, or that depends on one, there is a
// variant for these tests, "path [tested.test]".
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	Imports                 []string          // variants included
	ImportMap               map[string]string // from the paths in the source to those of variants
	Error                   *struct{ Err string }

	sources map[string][]byte // by file
	digest  digest            // of the sources, and of what they import
	types   *types.Package    // nil where it does not compile
	spoilt  bool              // because of something that it imports
	done    chan struct{}
}

// list runs go list, which gives packages after those that they import. It has no flags of builds: with others than the
// builds of a checkout, all that is elsewhere would be compiled once more for them.
func list(module string, args ...string) (all []*listed, err error) {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"list",
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

// checker checks a module again and again. Packages that were checked before, and import what they imported then, are
// not checked again.
type checker struct {
	root, module string
	requires     digest             // of go.mod and go.sum, which the fields below depend on
	known        map[digest]*listed // those that compiled when the module was checked last
	exports      map[string]string  // of packages elsewhere, the files of their types

	fset *token.FileSet
	ours map[string]*listed // by path
	mu   sync.Mutex         // gc serves one at a time
	gc   types.Importer
}

func newChecker(root, module string) *checker { return &checker{root: root, module: module} }

// reset forgets everything if other versions of what is elsewhere are required.
func (c *checker) reset() error {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(c.module, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		hash.Write(data)
		hash.Write([]byte{0})
	}
	requires := digest(hash.Sum(nil))
	if c.gc != nil && c.requires == requires {
		return nil
	}
	c.requires, c.known, c.exports, c.fset = requires, nil, map[string]string{}, token.NewFileSet()
	c.gc = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.exports[path])
	})
	return nil
}

// check checks our packages, each once those are done that it imports.
func (c *checker) check() error {
	if err := c.reset(); err != nil {
		return err
	}
	all, err := c.list()
	if err != nil {
		return err
	}
	g := errgroup.Group{}
	g.SetLimit(runtime.GOMAXPROCS(0)) // a package waits for earlier ones alone, so none waits for ever
	var failed []error
	for _, p := range all {
		g.Go(func() error {
			defer close(p.done)
			if before := c.known[p.digest]; before != nil {
				p.types = before.types
			} else if err := c.checkPackage(p); err != nil && !p.spoilt {
				c.mu.Lock()
				defer c.mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	err = g.Wait()
	c.known = map[digest]*listed{}
	for _, p := range all {
		if p.sources = nil; p.types != nil {
			c.known[p.digest] = p
		}
	}
	return errors.Join(err, errors.Join(failed...))
}

// list returns our packages, and notes where the types are of what they import from elsewhere.
func (c *checker) list() (ours []*listed, err error) {
	all, err := list(c.module, "-deps", "-test", "./...")
	if err != nil {
		return nil, err
	}
	c.ours = map[string]*listed{}
	for _, p := range all {
		if strings.HasPrefix(p.Dir, c.root+string(filepath.Separator)) && !strings.HasSuffix(p.ImportPath, ".test") {
			c.ours[p.ImportPath] = p
			ours = append(ours, p)
		}
	}
	elsewhere := map[string]bool{}
	for _, p := range ours {
		if err := c.digest(p); err != nil {
			return nil, err
		}
		for _, path := range p.Imports {
			if c.ours[path] == nil && c.exports[path] == "" && path != "unsafe" && path != "C" {
				elsewhere[path] = true
			}
		}
	}
	if len(elsewhere) == 0 {
		return ours, nil
	}
	exported, err := list(c.module, append([]string{"-export"}, slices.Sorted(maps.Keys(elsewhere))...)...)
	for _, p := range exported {
		c.exports[p.ImportPath] = p.Export
	}
	return ours, err
}

// digest reads the sources of a package. Those that it imports were read before.
func (c *checker) digest(p *listed) error {
	hash := sha256.New()
	part := func(data string) { fmt.Fprintf(hash, "%d:%s", len(data), data) }
	part(p.ImportPath)
	p.sources = map[string][]byte{}
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		name = filepath.Join(p.Dir, name)
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		p.sources[name] = data
		part(name)
		part(string(data))
	}
	for _, path := range p.Imports {
		part(path)
		if imported := c.ours[path]; imported != nil {
			part(string(imported.digest[:]))
		}
	}
	p.digest = digest(hash.Sum(nil))
	return nil
}

func (c *checker) checkPackage(p *listed) (err error) {
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(p.sources)) {
		f, err := parser.ParseFile(c.fset, name, p.sources[name], parser.SkipObjectResolution)
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
