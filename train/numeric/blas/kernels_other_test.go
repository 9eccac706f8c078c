//go:build !amd64

package blas

func supported() []*kernels { return nil }
