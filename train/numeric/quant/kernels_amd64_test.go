package quant

import "golang.org/x/sys/cpu"

func supported() []*kernels {
	all := []*kernels{plain()}
	if cpu.X86.HasAVX2 {
		all = append(all, avx2())
		if cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512F {
			all = append(all, vnni())
		}
	}
	return all
}
