package importlaw

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is that of the repository.
const root = "../.."

// link is a Markdown link to a file of the repository, with the name of code that its text is, "" for other texts.
type link struct{ name, target string }

var (
	linkPattern = regexp.MustCompile(`\[([^\[\]]*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)`)
	namePattern = regexp.MustCompile("^`([A-Za-z_]\\w*(?:\\.[A-Za-z_]\\w*)*)`$")
	stepPattern = regexp.MustCompile(`(?m)^(\d+)\. (\S+)`)
)

// linksOf returns the links of a page that lead to files.
func linksOf(page string) (links []link) {
	for _, m := range linkPattern.FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[2], ":") {
			continue
		}
		name := ""
		if n := namePattern.FindStringSubmatch(m[1]); n != nil {
			name = n[1]
		}
		links = append(links, link{name, m[2]})
	}
	return links
}

// TestPagesNameWhatExists follows the links of every page: the file is there, and a name of code in the text of a link
// is declared in the Go file that the link leads to.
func TestPagesNameWhatExists(t *testing.T) {
	declared := map[string]map[string]bool{} // by file
	pages := 0
	eachFile(t, ".md", func(page string) {
		pages++
		for _, l := range linksOf(read(t, page)) {
			file := filepath.Join(filepath.Dir(page), l.target)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, l.target)
				continue
			}
			if l.name == "" || filepath.Ext(file) != ".go" {
				continue
			}
			if declared[file] == nil {
				declared[file] = declarations(t, file)
			}
			if !declared[file][l.name] {
				t.Errorf("%s: %s declares no %s", page, l.target, l.name)
			}
		}
	})
	if pages < 10 {
		t.Errorf("%d pages: the test does not find them", pages)
	}
}

// TestWalks checks that each walk of docs/WALKS.md has a length that one can read at once, and that each function that
// it passes is called.
func TestWalks(t *testing.T) {
	_, walks, _ := strings.Cut(read(t, root+"/docs/WALKS.md"), "\n## ")
	used := usedNames(t)
	all := strings.Split(walks, "\n## ")
	if len(all) != 10 {
		t.Errorf("%d walks; the page promises ten", len(all))
	}
	for _, walk := range all {
		title, _, _ := strings.Cut(walk, "\n")
		steps := stepPattern.FindAllStringSubmatch(walk, -1)
		if len(steps) < 6 || len(steps) > 14 {
			t.Errorf("%s: %d steps; a walk has 6 to 14", title, len(steps))
		}
		for _, step := range steps {
			links := linksOf(step[2])
			if len(links) != 1 || links[0].name == "" {
				t.Errorf("%s: step %s does not begin with a link to a function", title, step[1])
				continue
			}
			names := strings.Split(links[0].name, ".")
			if last := names[len(names)-1]; !used[last] {
				t.Errorf("%s: nothing calls %s", title, links[0].name)
			}
		}
	}
}

// declarations returns what a Go file declares: functions, types, variables and constants by name, methods and fields
// as Type.Name, and all of these also with the name of the package before them.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	file := parse(t, path)
	names := map[string]bool{}
	add := func(parts ...string) {
		name := strings.Join(parts, ".")
		names[name], names[file.Name.Name+"."+name] = true, true
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name.Name)
			} else {
				add(receiver(d.Recv.List[0].Type), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name)
					}
				case *ast.TypeSpec:
					add(spec.Name.Name)
					for _, name := range members(spec.Type) {
						add(spec.Name.Name, name)
					}
				}
			}
		}
	}
	names[file.Name.Name] = true
	return names
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members returns the names of a struct's fields and of an interface's methods.
func members(e ast.Expr) (names []string) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// usedNames returns the names that the program's code has outside declarations of functions. A name tells that
// something of this name is called, which may be another function: it finds what nobody calls any more.
func usedNames(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	eachFile(t, ".go", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		declaring := map[*ast.Ident]bool{}
		ast.Inspect(parse(t, path), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declaring[n.Name] = true
			case *ast.Ident:
				used[n.Name] = used[n.Name] || !declaring[n]
			}
			return true
		})
	})
	return used
}

// eachFile calls f with the files of the repository whose names end in ext.
func eachFile(t *testing.T, ext string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if skipped := []string{".git", "testdata", "node_modules"}; d.IsDir() && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		if !d.IsDir() && filepath.Ext(path) == ext {
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
