//go:build !amd64

package quant

func fastest() *kernels { return plain() }
