package portable

// What the assembly has to agree with, to the bit, and what other processors run.

func dotGo(x, y []float32) float32 {
	var a, b, c, d, e, f, g, h float32
	for len(x) >= 8 && len(y) >= 8 {
		a += float32(x[0] * y[0])
		b += float32(x[1] * y[1])
		c += float32(x[2] * y[2])
		d += float32(x[3] * y[3])
		e += float32(x[4] * y[4])
		f += float32(x[5] * y[5])
		g += float32(x[6] * y[6])
		h += float32(x[7] * y[7])
		x, y = x[8:], y[8:]
	}
	y = y[:len(x)]
	for k, v := range x {
		a += float32(v * y[k])
	}
	return ((a + b) + (c + d)) + ((e + f) + (g + h))
}

func addGo(x, sum []float32) {
	sum = sum[:len(x)]
	for j, v := range x {
		sum[j] += v
	}
}

func subGo(x, sum []float32) {
	sum = sum[:len(x)]
	for j, v := range x {
		sum[j] -= v
	}
}
