//go:build !amd64

package nearest

// products sets out[r] to the product of the query with row r of codes.
func products(out []int32, query []int16, codes []int8) { plainProducts(out, query, codes) }
