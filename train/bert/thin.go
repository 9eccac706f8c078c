package bert

import "giantstream/train/bert/compute"

// thin leaves a share of the tokens out of each text of b, by its seed, but
// never the first and the last. The others keep their places, so that the
// network sees gaps and not another text.
func thin(b *compute.Batch, share float64) {
	if share == 0 {
		return
	}
	d := compute.Dropout{Rate: share, Site: siteTokens}
	b.Places = b.Places[:0]
	from, at := 0, 0
	for i, seed := range b.Seeds {
		end := int(b.Start[i+1])
		dropped := d.Of(seed)
		for r := from; r < end; r++ {
			if r == from || r == end-1 || dropped.Keeps(r-from) {
				b.IDs[at] = b.IDs[r]
				b.Places = append(b.Places, int32(r-from))
				at++
			}
		}
		from, b.Start[i+1] = end, int32(at)
	}
	b.IDs = b.IDs[:at]
}
