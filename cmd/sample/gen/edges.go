package main

import (
	"cmp"
	"go/ast"
	"go/doc/comment"
	"maps"
	"path"
	"slices"
)

// edgeSet holds one edge per pair of ends; the first kind added stays.
type edgeSet map[[2]string]edge

func (s edgeSet) add(src, dst, kind string) {
	if src == dst || dst == "" {
		return
	}
	if _, ok := s[[2]string{src, dst}]; !ok {
		s[[2]string{src, dst}] = edge{src, dst, kind}
	}
}

func (s edgeSet) sorted() []edge {
	return slices.SortedFunc(maps.Values(s), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
	})
}

func (s edgeSet) addPackage(ix index, p *pkg) {
	for _, imported := range p.Imports {
		if _, ok := ix.packages[imported]; ok {
			s.add(p.ImportPath, imported, "imports")
		}
	}
	s.addDocLinks(ix, p, p.ImportPath, p.Doc)
}

func (s edgeSet) addDecl(ix index, p *pkg, d decl) {
	src := ix.symbols[p.ImportPath+"."+d.names[0]]
	if d.receiver == "" {
		s.add(src, p.ImportPath, "member")
	} else {
		s.add(src, ix.symbols[p.ImportPath+"."+d.receiver], "receiver")
	}
	s.addTypes(ix, p, src, d.syntax)
	s.addDocLinks(ix, p, src, d.doc)
}

// addTypes adds an edge to every exported type that the declaration names: in parameters, results,
// constraints, struct fields, interface methods, and the type of a const or var.
func (s edgeSet) addTypes(ix index, p *pkg, src string, d ast.Decl) {
	imports := p.imports[p.fset.Position(d.Pos()).Filename]
	types, parameters := signature(d)
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // another package's type
			if name, ok := n.X.(*ast.Ident); ok {
				s.add(src, ix.symbols[ix.importPath(imports, name.Name)+"."+n.Sel.Name], "types")
			}
			return false
		case *ast.Field: // its names are no types
			ast.Inspect(n.Type, visit)
			return false
		case *ast.ArrayType: // nor is its length
			ast.Inspect(n.Elt, visit)
			return false
		case *ast.Ident:
			if n.IsExported() && !parameters[n.Name] {
				s.add(src, ix.symbols[p.ImportPath+"."+n.Name], "types")
			}
		}
		return true
	}
	for _, t := range types {
		ast.Inspect(t, visit)
	}
}

// signature returns the type expressions of a declaration and the names of its type parameters,
// which hide the package's types of the same name.
func signature(d ast.Decl) (types []ast.Expr, parameters map[string]bool) {
	parameters = map[string]bool{}
	fields := func(lists ...*ast.FieldList) {
		for _, list := range lists {
			if list == nil {
				continue
			}
			for _, f := range list.List {
				types = append(types, f.Type)
			}
		}
	}
	declare := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, f := range list.List {
			for _, name := range f.Names {
				parameters[name.Name] = true
			}
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		fields(d.Type.TypeParams, d.Type.Params, d.Type.Results)
		declare(d.Type.TypeParams)
		if d.Recv != nil {
			for _, name := range receiverParameters(d.Recv.List[0].Type) {
				parameters[name] = true
			}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				fields(spec.TypeParams)
				declare(spec.TypeParams)
				types = append(types, spec.Type)
			case *ast.ValueSpec:
				if spec.Type != nil {
					types = append(types, spec.Type)
				}
			}
		}
	}
	return types, parameters
}

// receiverParameters returns the names K and V of a receiver *Map[K, V].
func receiverParameters(t ast.Expr) []string {
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	var args []ast.Expr
	switch t := t.(type) {
	case *ast.IndexExpr:
		args = []ast.Expr{t.Index}
	case *ast.IndexListExpr:
		args = t.Indices
	}
	var names []string
	for _, a := range args {
		if id, ok := a.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
	}
	return names
}

// importPath resolves the name of an import in one file, "" if there is none.
func (ix index) importPath(imports []importSpec, name string) string {
	for _, spec := range imports {
		local := spec.name
		if local == "" {
			local = path.Base(spec.path)
			if p, ok := ix.packages[spec.path]; ok {
				local = p.Name // math/rand/v2 is rand
			}
		}
		if local == name {
			return spec.path
		}
	}
	return ""
}

// addDocLinks adds an edge to everything that the doc comment links to.
func (s edgeSet) addDocLinks(ix index, p *pkg, src, doc string) {
	for _, link := range docLinks(p.Parser().Parse(doc)) {
		target := cmp.Or(link.ImportPath, p.ImportPath)
		switch {
		case link.Recv != "":
			target = ix.symbols[target+"."+link.Recv+"."+link.Name]
		case link.Name != "":
			target = ix.symbols[target+"."+link.Name]
		case ix.packages[target] == nil:
			target = ""
		}
		s.add(src, target, "doc")
	}
}

func docLinks(d *comment.Doc) []*comment.DocLink {
	var links []*comment.DocLink
	text := func(ts []comment.Text) {
		for _, t := range ts {
			if link, ok := t.(*comment.DocLink); ok {
				links = append(links, link)
			}
		}
	}
	var blocks func([]comment.Block)
	blocks = func(bs []comment.Block) {
		for _, b := range bs {
			switch b := b.(type) {
			case *comment.Paragraph:
				text(b.Text)
			case *comment.Heading:
				text(b.Text)
			case *comment.List:
				for _, item := range b.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(d.Content)
	return links
}
