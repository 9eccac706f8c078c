//go:build !amd64

package blas

func fastest() *kernels { return nil }
