//go:build cuda

package cuda

import (
	"cmp"
	"slices"

	"gorgonia.org/cu"

	"giantstream/train/encoders/bert/compute"
)

// groups says which rows share an index: group i has rows order[starts[i]:starts[i+1]], ascending,
// and index targets[i].
type groups struct{ order, starts, targets *buffer }

func (be *Backend) groups(index []int32) (groups, int) {
	order := make([]int32, len(index))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(index[a], index[b]) })
	var starts, targets []int32
	for i, r := range order {
		if i == 0 || index[r] != index[order[i-1]] {
			starts, targets = append(starts, int32(i)), append(targets, index[r])
		}
	}
	starts = append(starts, int32(len(order)))
	return groups{be.indices(order), be.indices(starts), be.indices(targets)}, len(targets)
}

// scatter adds each group's rows of x to a row of g.
func (d *device) scatter(g, x compute.Buffer, by groups, n, width int) error {
	return d.launch("scatter", rowGrid(n, width), rowThreads, devicePtr(g, 0), devicePtr(x, 0), by.order,
		by.starts, by.targets,
		width)
}

// EmbedBackward implements compute.Backward.
func (be *Backend) EmbedBackward(g *compute.Embedding, dy compute.Buffer, b compute.Batch, e *compute.Embedding) {
	k, rows, gradient, m := be.cachedBatch(b), b.Rows(), *g, *e
	w := m.Norm.Width
	byWord, words := be.groups(b.IDs)
	byPlace, places := be.groups(placesOf(b))
	sum := be.New(rows * w)
	be.device.do(func(d *device) error {
		if err := d.embedSum(sum, k, rows, &m); err != nil {
			return err
		}
		if err := d.normBackward(&gradient.Norm, dy, dy, sum, nil, rows, &m.Norm); err != nil {
			return err
		}
		if err := d.scatter(gradient.Words, dy, byWord, words, w); err != nil {
			return err
		}
		if err := d.scatter(gradient.Positions, dy, byPlace, places, w); err != nil {
			return err
		}
		return d.columnSum(devicePtr(gradient.Types, 0), devicePtr(dy, 0), rows, w)
	})
	compute.Free(be, sum, byWord.order, byWord.starts, byWord.targets, byPlace.order, byPlace.starts, byPlace.targets)
}

// placesOf returns the place of each token within its text.
func placesOf(b compute.Batch) []int32 {
	if b.Places != nil {
		return b.Places
	}
	places := make([]int32, b.Rows())
	for i := range b.Texts() {
		for r := b.Start[i]; r < b.Start[i+1]; r++ {
			places[r] = r - b.Start[i]
		}
	}
	return places
}

// sumRows is how many rows a block of column_sum adds up.
const sumRows = 256

// columnSum adds the sums of columns to g: of chunks of rows first, then of the chunks.
func (d *device) columnSum(g, x cu.DevicePtr, rows, columns int) error {
	chunks := ceil(rows, sumRows)
	sums, err := d.scratch(chunks * columns)
	if err != nil {
		return err
	}
	err = d.launch("column_sum", grid{ceil(columns, sumColumns), chunks}, rowThreads, sums, x, rows, columns, columns,
		sumRows, flag(false))
	if err != nil {
		return err
	}
	return d.addColumns(g, sums, chunks, columns, columns)
}

// addColumns adds the sums of few rows' columns to g. Rows lie stride numbers apart.
func (d *device) addColumns(g, x cu.DevicePtr, rows, columns, stride int) error {
	return d.launch("column_sum", grid{ceil(columns, sumColumns), 1}, rowThreads, g, x, rows, columns, stride, rows,
		flag(true))
}

// normBackward is AddNormBackward; residual may be nil.
func (d *device) normBackward(g *compute.Norm, dx, dy, x, residual compute.Buffer, rows int, n *compute.Norm) error {
	other := null
	if residual != nil {
		other = residual.(*buffer)
	}
	w, blocks := n.Width, ceil(rows, normRows)
	sums, err := d.scratch(blocks * 2 * w)
	if err != nil {
		return err
	}
	if err := d.launch("norm_backward", grid{blocks, 1}, rowThreads, devicePtr(dx, 0), devicePtr(dy, 0),
		devicePtr(x, 0), other,
		devicePtr(n.Gain, 0), sums, rows, w, float32(n.Epsilon)); err != nil {
		return err
	}
	if err := d.addColumns(devicePtr(g.Gain, 0), sums, blocks, w, 2*w); err != nil {
		return err
	}
	return d.addColumns(devicePtr(g.Bias, 0), sums+cu.DevicePtr(4*w), blocks, w, 2*w)
}

// AddNormBackward implements compute.Backward.
func (be *Backend) AddNormBackward(g *compute.Norm, dx, dy, x, residual compute.Buffer, rows int, n *compute.Norm) {
	gradient, norm := *g, *n
	be.device.do(func(d *device) error { return d.normBackward(&gradient, dx, dy, x, residual, rows, &norm) })
}

// LinearBackward implements compute.Backward.
func (be *Backend) LinearBackward(dx, dy compute.Buffer, rows int, l *compute.Linear, add bool) {
	m := *l
	be.device.do(func(d *device) error {
		return d.product("nt", dx, dy, m.Weight, nil, rows, m.In, m.Out, false, add)
	})
}

// LinearGradient implements compute.Backward.
func (be *Backend) LinearGradient(g *compute.Linear, x, dy compute.Buffer, rows int) {
	m := *g
	be.device.do(func(d *device) error {
		if err := d.product("tn", m.Weight, x, dy, nil, m.In, m.Out, rows, false, true); err != nil {
			return err
		}
		return d.columnSum(devicePtr(m.Bias, 0), devicePtr(dy, 0), rows, m.Out)
	})
}

// ActivateBackward implements compute.Backward.
func (be *Backend) ActivateBackward(dx, dy, x compute.Buffer, n int, a compute.Activation) {
	be.device.do(func(d *device) error {
		return d.launch("activate_backward", grid{ceil(n, elementThreads), 1}, elementThreads, devicePtr(dx, 0),
			devicePtr(dy, 0),
			devicePtr(x, 0), uint64(n), int(a))
	})
}

// AttendBackward implements compute.Backward.
func (be *Backend) AttendBackward(dqkv, dy, qkv compute.Buffer, b compute.Batch, heads, width int,
	drop compute.Dropout) {
	k, rows := be.cachedBatch(b), b.Rows()
	be.device.do(func(d *device) error {
		a, err := k.attention(heads, width, drop)
		if err != nil {
			return err
		}
		of, err := d.scratch(rows * heads * statistics)
		if err != nil {
			return err
		}
		arguments := append([]any{devicePtr(dqkv, 0), of, devicePtr(dy, 0), devicePtr(qkv, 0)}, a.shared...)
		if err := d.launch("attend_backward_query"+a.suffix, a.grid, a.threads, arguments...); err != nil {
			return err
		}
		return d.launch("attend_backward_key"+a.suffix, a.grid, a.threads, arguments...)
	})
}

// PoolBackward implements compute.Backward.
func (be *Backend) PoolBackward(dx, dy compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	k, texts := be.cachedBatch(b), b.Texts()
	be.device.do(func(d *device) error {
		return d.launch("pool_backward", rowGrid(texts, width), rowThreads, devicePtr(dx, 0), devicePtr(dy, 0),
			k.starts, width,
			int(p))
	})
}
