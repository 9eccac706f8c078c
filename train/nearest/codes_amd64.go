package nearest

import "golang.org/x/sys/cpu"

// products sets out[r] to the product of the query with row r of codes.
func products(out []int32, query []int16, codes []int8) {
	if !cpu.X86.HasAVX2 || len(out) == 0 {
		plainProducts(out, query, codes)
		return
	}
	productsAVX2(&out[0], &query[0], &codes[:len(out)*len(query)][0], len(out), len(query))
}

// rows is positive, and dim a positive multiple of 16.
//
//go:noescape
func productsAVX2(out *int32, query *int16, codes *int8, rows, dim int)
