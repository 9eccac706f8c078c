package blas

// Sdot returns x·y. Strides other than 1, and faults, are gonum's business.
func (im Implementation) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	if im.kernels == nil || incX != 1 || incY != 1 || n <= 0 || len(x) < n || len(y) < n {
		return im.Implementation.Sdot(n, x, incX, y, incY)
	}
	return im.dot(n, &x[0], &y[0])
}

// Saxpy adds alpha·x to y.
func (im Implementation) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	if im.kernels == nil || incX != 1 || incY != 1 || n <= 0 || len(x) < n || len(y) < n || alpha == 0 {
		im.Implementation.Saxpy(n, alpha, x, incX, y, incY)
		return
	}
	im.axpy(n, alpha, &x[0], &y[0])
}
