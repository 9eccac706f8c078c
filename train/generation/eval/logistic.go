package eval

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"

	"giantstream/internal/parallel"
	"giantstream/train/numeric"
	"giantstream/train/numeric/simd"
)

// logistic is the fit of a multinomial logistic regression: it minimizes
//
//	F(W, b) = mean over the rows of the log loss + λ·‖W‖²/2,  λ = 1/(C·rows)
//
// which is scikit-learn's objective divided by C·rows. The biases b are not regularized, so that
// moving the origin to the rows' mean changes nothing but the condition of the problem.
type logistic struct {
	x     []float32 // all nodes, n×dim, rows of length 1
	dim   int
	label []int32 // of all nodes
	rows  []int32 // the nodes to learn from

	classes int
	mean    []float32 // of the rows
	learned []float32 // the rows, less their mean
	lambda  float64
	// curvature is the diagonal of an estimate of the loss's second derivatives at the classes'
	// frequencies, without λ.
	curvature []float64

	// Scratch of scores, and the weights and the gradient in the precision of the products.
	block, z, weights, gradient []float32
	parts                       []logisticPart
	workers                     int
}

// logisticPart is what some of the rows add to an objective, and scratch of theirs.
type logisticPart struct {
	z, gradient []float32
	biases      []float64
	loss        float64
}

const (
	logisticBlock = 256 // rows that are multiplied at a time
	// Sums are those of logisticParts parts of the rows at most, each of logisticRows at least. With more
	// than logisticScratch numbers in all their gradients, there are fewer.
	logisticParts, logisticRows = 8, 1024
	logisticScratch             = 1 << 22
	// lbfgsPairs is the memory of L-BFGS.
	lbfgsPairs = 8
	// lbfgsTolerance ends the iterations where one lowers F by less than this share of it.
	// Tighter ones change accuracies by less than a thousandth.
	lbfgsTolerance  = 2e-4
	lbfgsIterations = 60
)

// newLogistic prepares a fit on the given rows. The number of workers does not change the result.
func newLogistic(x []float32, dim int, label []int32, classes int, rows []int32, workers int) *logistic {
	l := &logistic{x: x, dim: dim, label: label, classes: classes, rows: rows, workers: workers,
		block: make([]float32, logisticBlock*dim), z: make([]float32, logisticBlock*classes),
		weights: make([]float32, classes*dim), gradient: make([]float32, classes*dim)}
	l.parts = make([]logisticPart, parallel.Blocks(len(rows), l.partRows()))
	for k := range l.parts {
		l.parts[k] = logisticPart{z: make([]float32, logisticBlock*classes),
			gradient: make([]float32, classes*dim), biases: make([]float64, classes)}
	}
	l.moments()
	l.learned = make([]float32, len(rows)*dim)
	l.centre(l.learned, rows)
	return l
}

// partRows is how many rows a part has.
func (l *logistic) partRows() int {
	parts := max(1, min(logisticParts, logisticScratch/(l.classes*l.dim)))
	return max(logisticRows, parallel.Blocks(len(l.rows), parts))
}

// centre copies rows, less the mean.
func (l *logistic) centre(to []float32, rows []int32) {
	for b, i := range rows {
		out := to[b*l.dim : (b+1)*l.dim]
		for d, v := range l.x[int(i)*l.dim : int(i+1)*l.dim] {
			out[d] = v - l.mean[d]
		}
	}
}

// moments sets mean and curvature.
func (l *logistic) moments() {
	dim, n := l.dim, float64(len(l.rows))
	sum, squares := make([]float64, dim), make([]float64, dim)
	share := make([]float64, l.classes)
	for _, i := range l.rows {
		for d, v := range l.x[int(i)*dim : int(i+1)*dim] {
			sum[d] += float64(v)
			squares[d] += float64(v) * float64(v)
		}
		share[l.label[i]] += 1 / n
	}
	l.mean = make([]float32, dim)
	l.curvature = make([]float64, l.classes*(dim+1))
	for d := range dim {
		l.mean[d] = float32(sum[d] / n)
	}
	for k, p := range share {
		p = max(p, 0.5/n)
		for d := range dim {
			m := sum[d] / n
			l.curvature[k*dim+d] = p * (1 - p) * max(squares[d]/n-m*m, 0)
		}
		l.curvature[l.classes*dim+k] = p * (1 - p)
	}
}

// parameters returns the start of the first fit: the biases tell the classes' frequencies.
func (l *logistic) parameters() []float64 {
	p := make([]float64, l.classes*(l.dim+1))
	bias := p[l.classes*l.dim:]
	for k := range bias {
		bias[k] = 0.5
	}
	for _, i := range l.rows {
		bias[l.label[i]]++
	}
	for k := range bias {
		bias[k] = math.Log(bias[k])
	}
	return p
}

// uncentred returns a copy of the parameters whose biases hold for rows that are not moved by mean, for
// a fit on other rows to start from; that fit moves them by its own mean.
func (l *logistic) uncentred(p []float64) []float64 { return l.moved(p, -1) }

// centred is the inverse of uncentred, in place.
func (l *logistic) centred(p []float64) { copy(p, l.moved(p, 1)) }

func (l *logistic) moved(p []float64, by float64) []float64 {
	out := slices.Clone(p)
	for k := range l.classes {
		for d, m := range l.mean {
			out[l.classes*l.dim+k] += by * p[k*l.dim+d] * float64(m)
		}
	}
	return out
}

// scores writes the class scores of centred rows to the beginning of z, and returns it: rows × classes.
func (l *logistic) scores(p []float64, centred, z []float32) []float32 {
	rows := len(centred) / l.dim
	z = z[:rows*l.classes]
	for b := range rows {
		for k, v := range p[l.classes*l.dim:] {
			z[b*l.classes+k] = float32(v)
		}
	}
	numeric.Gemm(numeric.TransB, rows, l.classes, l.dim, centred, l.weights, z)
	return z
}

// scoresOf is scores of any nodes.
func (l *logistic) scoresOf(p []float64, rows []int32) []float32 {
	block := l.block[:len(rows)*l.dim]
	l.centre(block, rows)
	return l.scores(p, block, l.z)
}

// use makes the parameters those that scores multiplies with.
func (l *logistic) use(p []float64) {
	for i := range l.weights {
		l.weights[i] = float32(p[i])
	}
}

// objective returns F and its gradient at the parameters p.
func (l *logistic) objective(p, gradient []float64) float64 {
	l.use(p)
	parallel.ForEach(len(l.rows), l.partRows(), l.workers, func(_, part, from, to int) {
		l.add(&l.parts[part], p, from, to)
	})
	clear(l.gradient)
	clear(gradient)
	biases := gradient[l.classes*l.dim:]
	var loss float64
	for _, part := range l.parts {
		loss += part.loss
		numeric.Axpy(1, part.gradient, l.gradient)
		floats.Add(biases, part.biases)
	}
	n := float64(len(l.rows))
	var square float64
	for i, g := range l.gradient {
		square += p[i] * p[i]
		gradient[i] = float64(g)/n + l.lambda*p[i]
	}
	for k := range biases {
		biases[k] /= n
	}
	return loss/n + l.lambda*square/2
}

// add makes a part the sums of the rows from and up to a number.
func (l *logistic) add(part *logisticPart, p []float64, from, to int) {
	part.loss = 0
	clear(part.gradient)
	clear(part.biases)
	for from < to {
		end := min(from+logisticBlock, to)
		block := l.learned[from*l.dim : end*l.dim]
		z := l.scores(p, block, part.z)
		for b, i := range l.rows[from:end] {
			row := z[b*l.classes : (b+1)*l.classes]
			simd.Softmax(row)
			part.loss -= logOf(row[l.label[i]])
			row[l.label[i]]--
			for k, v := range row {
				part.biases[k] += float64(v)
			}
		}
		numeric.Gemm(numeric.TransA, l.classes, l.dim, end-from, z, block, part.gradient)
		from = end
	}
}

// fit moves the parameters p to the optimum for the regularization strength c, by L-BFGS (Liu
// and Nocedal 1989) in coordinates in which the curvature is 1.
func (l *logistic) fit(p []float64, c float64) {
	l.lambda = 1 / (c * float64(len(l.rows)))
	scale := make([]float64, len(p)) // of a coordinate, in parameters
	for i, h := range l.curvature {
		if i < l.classes*l.dim {
			h += l.lambda
		}
		scale[i] = 1 / math.Sqrt(h)
	}
	// The line search asks for value and gradient one after the other; they are computed together.
	at, slope := make([]float64, len(p)), make([]float64, len(p))
	var last []float64 // where slope is the gradient
	value := func(x []float64) float64 {
		last = append(last[:0], x...)
		f := l.objective(floats.MulTo(at, x, scale), slope)
		floats.Mul(slope, scale)
		return f
	}
	gradient := func(g, x []float64) {
		if !slices.Equal(x, last) {
			value(x)
		}
		copy(g, slope)
	}
	// An error says that the line search has found nothing lower, which is an end like others, or that
	// the objective is no number at p: then F is infinite.
	result, _ := optimize.Minimize(optimize.Problem{Func: value, Grad: gradient}, floats.DivTo(at, p, scale),
		&optimize.Settings{MajorIterations: lbfgsIterations,
			Converger: &optimize.FunctionConverge{Relative: lbfgsTolerance, Iterations: 1}},
		&optimize.LBFGS{Store: lbfgsPairs})
	if result != nil && !math.IsInf(result.F, 1) {
		floats.MulTo(p, result.X, scale)
	}
}

// predict returns the likeliest class of each row, by the parameters p.
func (l *logistic) predict(p []float64, rows []int32) []int32 {
	l.use(p)
	out := make([]int32, 0, len(rows))
	for some := range slices.Chunk(rows, logisticBlock) {
		z := l.scoresOf(p, some)
		for b := range some {
			out = append(out, int32(argmax(z[b*l.classes:(b+1)*l.classes])))
		}
	}
	return out
}

// score returns how many of the rows' classes the parameters p tell, and the sum of the log losses.
func (l *logistic) score(p []float64, rows []int32) (right int, loss float64) {
	l.use(p)
	for some := range slices.Chunk(rows, logisticBlock) {
		z := l.scoresOf(p, some)
		for b, i := range some {
			row := z[b*l.classes : (b+1)*l.classes]
			if int32(argmax(row)) == l.label[i] {
				right++
			}
			simd.Softmax(row)
			loss -= logOf(row[l.label[i]])
		}
	}
	return right, loss
}

// logOf is the logarithm of a probability, bounded for those that underflow.
func logOf(p float32) float64 { return math.Log(math.Max(float64(p), 1e-30)) }

func argmax(z []float32) int {
	best := 0
	for k, v := range z {
		if v > z[best] {
			best = k
		}
	}
	return best
}
