//go:build cuda

package cuda

import (
	"fmt"
	"math"

	"giantstream/train/encoders/bert/compute"
)

// Sizes that the kernels have, too (kernels/*.cu).
const (
	productThreads = 256
	rowThreads     = 256
	elementThreads = 256
	normRows       = 16 // of a block of norm_backward
	sumColumns     = 32 // of a block of column_sum
	statistics     = 3  // numbers per row and head between the kernels of AttendBackward
	tileRows       = 32 // of a tile of attention
	wideTileRows   = 16 // with heads of more than 64 numbers
	widestHead     = 128
)

func ceil(n, by int) int { return (n + by - 1) / by }

// rowGrid has a block for each text or group, and enough for the columns of a row.
func rowGrid(n, width int) grid { return grid{n, ceil(width, rowThreads)} }

// null is a pointer to nothing.
var null *buffer

// product is C = A·B, C being m × n and A m × k. form is nn, nt (B is transposed in memory) or tn
// (A is).
func (d *device) product(form string, c, a, b compute.Buffer, bias *buffer, m, n, k int, gelu, add bool) error {
	// A small tile makes more blocks: a large one is for products that fill the device anyway. The
	// bits are the same.
	tile := 64
	if ceil(m, 128)*ceil(n, 128) >= d.processors {
		tile = 128
	}
	kernel := fmt.Sprintf("product_%s_%d", form, tile)
	if d.math != compute.Float32 {
		kernel = string(d.math) + "_" + kernel
	}
	return d.launch(kernel, grid{ceil(n, tile), ceil(m, tile)}, productThreads,
		devicePtr(c, 0), devicePtr(a, 0), devicePtr(b, 0), bias, m, n, k, flag(gelu), flag(add))
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Embed implements compute.Forward.
func (be *Backend) Embed(dst compute.Buffer, b compute.Batch, e *compute.Embedding) {
	k, rows, m := be.cachedBatch(b), b.Rows(), *e
	be.device.do(func(d *device) error {
		if err := d.embedSum(dst, k, rows, &m); err != nil {
			return err
		}
		return d.addNorm(dst, dst, nil, rows, &m.Norm)
	})
}

// embedSum gives the rows before normalization.
func (d *device) embedSum(dst compute.Buffer, k *batch, rows int, e *compute.Embedding) error {
	return d.launch("embed_sum", grid{rows, 1}, rowThreads, devicePtr(dst, 0), devicePtr(e.Words, 0),
		devicePtr(e.Positions, 0),
		devicePtr(e.Types, 0), k.ids, k.places, e.Norm.Width)
}

// addNorm normalizes x + residual; residual may be nil.
func (d *device) addNorm(dst, x, residual compute.Buffer, rows int, n *compute.Norm) error {
	other := null
	if residual != nil {
		other = residual.(*buffer)
	}
	return d.launch("add_norm", grid{ceil(rows, rowThreads/32), 1}, rowThreads, devicePtr(dst, 0), devicePtr(x, 0), other,
		devicePtr(n.Gain, 0), devicePtr(n.Bias, 0), rows, n.Width, float32(n.Epsilon))
}

// AddNorm implements compute.Forward.
func (be *Backend) AddNorm(dst, x, residual compute.Buffer, rows int, n *compute.Norm) {
	norm := *n
	be.device.do(func(d *device) error { return d.addNorm(dst, x, residual, rows, &norm) })
}

// Linear implements compute.Forward. GELU is part of the product, which saves a pass over the
// outcome.
func (be *Backend) Linear(dst, x compute.Buffer, rows int, l *compute.Linear, a compute.Activation) {
	m := *l
	be.device.do(func(d *device) error {
		err := d.product("nn", dst, x, m.Weight, m.Bias.(*buffer), rows, m.Out, m.In, a == compute.GELU, false)
		if err != nil || a == compute.GELU || a == compute.Identity {
			return err
		}
		return d.activate(dst, dst, rows*m.Out, a)
	})
}

// Activate implements compute.Forward.
func (be *Backend) Activate(dst, x compute.Buffer, n int, a compute.Activation) {
	be.device.do(func(d *device) error { return d.activate(dst, x, n, a) })
}

func (d *device) activate(dst, x compute.Buffer, n int, a compute.Activation) error {
	return d.launch("activate", grid{ceil(n, elementThreads), 1}, elementThreads, devicePtr(dst, 0),
		devicePtr(x, 0), uint64(n),
		int(a))
}

// Drop implements compute.Forward.
func (be *Backend) Drop(dst, x compute.Buffer, b compute.Batch, width int, drop compute.Dropout) {
	if b.Seeds == nil || drop.Rate == 0 {
		n := b.Rows() * width
		be.device.do(func(d *device) error {
			if dst == x {
				return nil
			}
			return d.activate(dst, x, n, compute.Identity)
		})
		return
	}
	k, rows := be.cachedBatch(b), b.Rows()
	least, scale := drop.Draw()
	be.device.do(func(d *device) error {
		return d.launch("drop", grid{rows, ceil(width, 4*elementThreads)}, elementThreads, devicePtr(dst, 0), devicePtr(x, 0),
			k.texts, k.starts, k.seeds, width, drop.Site, int(least), scale)
	})
}

// attention is what the kernels of Attend and AttendBackward need to know of their batch.
type attention struct {
	suffix  string // of the kernels' names: the room for a head's numbers
	grid    grid
	threads int
	shared  []any // arguments
}

// attention works out how attention runs, on the device's goroutine.
func (k *batch) attention(heads, width int, drop compute.Dropout) (a attention, err error) {
	tile, room := tileRows, 32
	for room < width {
		room *= 2
	}
	if room > widestHead {
		return a, fmt.Errorf("cuda: a head of attention has %d numbers, the kernels have room for %d", width,
			widestHead)
	}
	if room > 64 {
		tile = wideTileRows
	}
	tiles := k.tiles[tile]
	seeds, least, scale := k.seeds, uint64(0), float32(1)
	if seeds != nil && drop.Rate > 0 {
		least, scale = drop.Draw()
	} else {
		seeds = nil
	}
	return attention{
		suffix: fmt.Sprintf("_%d", room), grid: grid{tiles.n / 2, heads}, threads: tile * tile / 8,
		shared: []any{
			tiles, k.starts, seeds, heads, width, float32(1 / math.Sqrt(float64(width))), drop.Site, int(least), scale,
		},
	}, nil
}

// Attend implements compute.Forward.
func (be *Backend) Attend(dst, qkv compute.Buffer, b compute.Batch, heads, width int, drop compute.Dropout) {
	k := be.cachedBatch(b)
	be.device.do(func(d *device) error {
		a, err := k.attention(heads, width, drop)
		if err != nil {
			return err
		}
		return d.launch("attend"+a.suffix, a.grid, a.threads,
			append([]any{devicePtr(dst, 0), devicePtr(qkv, 0)}, a.shared...)...)
	})
}

// Pool implements compute.Forward.
func (be *Backend) Pool(dst, x compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	k, texts := be.cachedBatch(b), b.Texts()
	be.device.do(func(d *device) error {
		return d.launch("pool", rowGrid(texts, width), rowThreads, devicePtr(dst, 0), devicePtr(x, 0), k.starts,
			width, int(p))
	})
}
