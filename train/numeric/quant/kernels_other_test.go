//go:build !amd64

package quant

func supported() []*kernels { return []*kernels{plain()} }
