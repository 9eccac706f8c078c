//go:build !amd64

package portable

func dot(x, y []float32) float32 { return dotGo(x, y) }
func add(x, sum []float32)       { addGo(x, sum) }
func sub(x, sum []float32)       { subGo(x, sum) }
