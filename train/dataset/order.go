package dataset

import "giantstream/train/internal/rng"

// window is some row groups and the order of their rows.
type window struct {
	groups []group
	rows   int64
	// first is the position in the epoch of its first row.
	first int64
	mix   rng.Source
}

// windows is the plan of an epoch: which row groups are mixed with which. It
// is a function of the row groups' sizes, Window, seed and epoch, and needs
// no data.
func (d *Dataset) windows(seed uint64, epoch int) []window {
	r := rng.New(seed, uint64(epoch))
	order := r.Perm(len(d.groups))
	size := max(d.Window, 1)
	var plan []window
	var at int64
	for k := 0; k < len(order); k += size {
		w := window{first: at, mix: rng.New(seed, uint64(epoch), uint64(len(plan)))}
		for _, i := range order[k:min(k+size, len(order))] {
			w.groups = append(w.groups, d.groups[i])
			w.rows += d.groups[i].rows
		}
		at += w.rows
		plan = append(plan, w)
	}
	return plan
}

// order returns which of the window's rows, counted through its groups, comes
// at each place.
func (w *window) order() []int32 {
	r := w.mix // a copy: asked again, it says the same
	return r.Perm(int(w.rows))
}
