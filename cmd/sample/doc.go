// Package sample holds the sample graph that ships with giantstream: the public API of Go's
// standard library as a text-attributed graph.
//
// A node is a package or one of its exported declarations:
//
//	net/http              a package; text: package clause and package doc
//	net/http.Client       a type; text: its declaration and doc comment
//	net/http.Client.Do    a method
//	net/http.Get          a function
//	net/http.StatusContinue
//	                      a const or var declaration, named after the first
//	                      exported name of its group
//
// Every node's class, in the field "label", is the top-level directory of its package ("net"). An
// edge says that the source mentions the destination:
//
//	imports   package → package
//	member    function, type, const or var → its package
//	receiver  method → its type
//	types     declaration → a type in its signature, fields or definition
//	doc       anything → what its doc comment links to ([Client.Do])
//
// One pair of ends carries one edge, of the first kind in that list that applies. Left out are
// internal, vendored and command packages, package builtin (it is not importable) and the constants
// and variables of package syscall, which are tables of numbers. The graph is that of linux/amd64.
//
// The texts and names come from the Go project and stay under its licence, see LICENSE in this
// directory. Run go generate to make the graph again from the Go installation at hand; the
// committed files come from Go 1.26.8.
package sample
