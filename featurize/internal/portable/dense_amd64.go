package portable

// dotAsm is dotGo; y is at least as long as x.
//
//go:noescape
func dotAsm(x, y []float32) float32

// addAsm is addGo, subAsm is subGo; sum is at least as long as x.
//
//go:noescape
func addAsm(x, sum []float32)

//go:noescape
func subAsm(x, sum []float32)

func dot(x, y []float32) float32 { return dotAsm(x, y) }
func add(x, sum []float32)       { addAsm(x, sum) }
func sub(x, sum []float32)       { subAsm(x, sum) }
