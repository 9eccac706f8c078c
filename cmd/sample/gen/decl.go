package main

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/printer"
	"go/token"
	"strings"
	"unicode/utf8"
)

// decl is one exported declaration of a package.
type decl struct {
	// names are what the declaration declares, without the package: one name, "Type.Method", or all
	// names of a const or var group.
	names []string
	// receiver is the type of a method, "" otherwise.
	receiver string
	doc      string
	syntax   ast.Decl
}

// declarations lists the exported declarations of a package.
func declarations(p *pkg) []decl {
	var ds []decl
	values := func(vs []*doc.Value) {
		if p.ImportPath == "syscall" {
			return // tables of numbers, not API to read
		}
		for _, v := range vs {
			if names := exported(v.Names); len(names) > 0 {
				ds = append(ds, decl{names: names, doc: v.Doc, syntax: v.Decl})
			}
		}
	}
	funcs := func(fs []*doc.Func) {
		for _, f := range fs {
			ds = append(ds, decl{names: []string{f.Name}, doc: f.Doc, syntax: f.Decl})
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, t := range p.Types {
		ds = append(ds, decl{names: []string{t.Name}, doc: t.Doc, syntax: t.Decl})
		values(t.Consts)
		values(t.Vars)
		funcs(t.Funcs)
		for _, m := range t.Methods {
			ds = append(ds, decl{names: []string{t.Name + "." + m.Name}, receiver: t.Name, doc: m.Doc, syntax: m.Decl})
		}
	}
	return ds
}

func exported(names []string) []string {
	var out []string
	for _, n := range names {
		if token.IsExported(n) {
			out = append(out, n)
		}
	}
	return out
}

// label is the node's class: the top-level directory of the package.
func label(p *pkg) string {
	top, _, _ := strings.Cut(p.ImportPath, "/")
	return top
}

// maxPart bounds each part of a node's text, declaration and doc comment, in bytes. Few are longer,
// and what a thing is stands at its beginning.
const maxPart = 2000

func packageText(p *pkg) string {
	return join("package "+p.Name, p.Doc)
}

func declText(p *pkg, d decl) string {
	var buf bytes.Buffer
	config := printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}
	// Fprint fails for a node it does not know or a writer that fails; neither happens here.
	_ = config.Fprint(&buf, p.fset, d.syntax)
	return join(buf.String(), d.doc)
}

func join(declaration, doc string) string {
	declaration, doc = truncate(declaration), truncate(doc)
	if doc == "" {
		return declaration
	}
	return declaration + "\n\n" + doc
}

// truncate cuts s to maxPart bytes, at a space where there is one.
func truncate(s string) string {
	s = strings.TrimSpace(s)
	if len(s) <= maxPart {
		return s
	}
	cut := maxPart
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	if i := strings.LastIndexAny(s[:cut], " \n\t"); i > maxPart/2 {
		cut = i
	}
	return strings.TrimRight(s[:cut], " \n\t") + " …"
}
