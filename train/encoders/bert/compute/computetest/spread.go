package computetest

import (
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
)

// spread checks that no bit depends on the number of workers.
func spread(t *testing.T, be compute.Backend) {
	one, many := everything(t, be.Spread(1)), everything(t, be.Spread(3))
	for name, want := range one {
		if !slices.Equal(many[name], want) {
			t.Errorf("%s: other bits with three workers than with one", name)
		}
	}
}

// everything runs the operations that can be spread, on more rows than a
// worker takes at a time.
func everything(t *testing.T, be compute.Backend) map[string][]float32 {
	const w, inner, heads = 24, 40, 3
	b := compute.Batch{Start: []int32{0}}
	for i := range int32(40) {
		for j := range i%13 + 1 {
			b.IDs = append(b.IDs, (i*j+3)%11)
		}
		b.Start = append(b.Start, int32(len(b.IDs)))
	}
	b = seeded(b)
	rows := b.Rows()
	x := func(n int, seed uint64) compute.Buffer { return be.Upload(random(n, seed)) }
	norm := compute.Norm{Width: w, Gain: x(w, 1), Bias: x(w, 2), Epsilon: epsilon}
	embedding := &compute.Embedding{Words: x(11*w, 3), Positions: x(13*w, 4), Types: x(2*w, 5), Norm: norm}
	linear := &compute.Linear{In: w, Out: inner, Weight: x(w*inner, 6), Bias: x(inner, 7)}
	gNorm := compute.Norm{Width: w, Gain: x(w, 11), Bias: x(w, 12)}
	gEmbedding := &compute.Embedding{Words: x(11*w, 13), Positions: x(13*w, 14), Types: x(2*w, 15), Norm: gNorm}
	gLinear := &compute.Linear{In: w, Out: inner, Weight: x(w*inner, 16), Bias: x(inner, 17)}

	hidden, wide, context := be.New(rows*w), be.New(rows*inner), be.New(rows*w)
	be.Embed(hidden, b, embedding)
	dropped := be.New(rows * w)
	be.Drop(dropped, hidden, b, w, dropout)
	be.Linear(wide, hidden, rows, linear, compute.GELU)
	qkv := x(rows*3*w, 8)
	be.Attend(context, qkv, b, heads, w/heads, dropout)
	sum, pooled := be.New(rows*w), be.New(b.Texts()*w)
	be.AddNorm(sum, hidden, context, rows, &norm)
	be.Pool(pooled, sum, b, w, compute.Mean)

	dy, dWide, dx, dqkv := x(rows*w, 20), x(rows*inner, 21), be.New(rows*w), be.New(rows*3*w)
	be.AddNormBackward(&gNorm, dx, dy, hidden, context, rows, &norm)
	be.ActivateBackward(dWide, dWide, wide, rows*inner, compute.GELU)
	be.LinearGradient(gLinear, hidden, dWide, rows)
	be.AttendBackward(dqkv, dx, qkv, b, heads, w/heads, dropout)
	be.LinearBackward(dx, dWide, rows, linear, true)
	out := map[string][]float32{"AddNorm, Activate, Linear": read(t, be, dx, rows*w)}
	be.EmbedBackward(gEmbedding, dx, b, embedding)
	big, weights, mean, square, norms := x(200_000, 30), x(200_000, 31), be.New(200_000), be.New(200_000), be.New(1)
	be.Zero(mean)
	be.Zero(square)
	be.Squares(norms, 0, big)
	be.AdamW(weights, mean, square, big, norms, &compute.Step{Number: 1, Rate: 0.1, Beta1: 0.9, Beta2: 0.9,
		Epsilon: 1e-8, Clip: 1})
	for name, x := range map[string]compute.Buffer{
		"Embed": hidden, "Drop": dropped, "Linear": wide, "Attend": context, "AddNorm": sum, "Pool": pooled,
		"gain": gNorm.Gain, "bias": gNorm.Bias, "weights": gLinear.Weight, "bias of Linear": gLinear.Bias,
		"AttendBackward": dqkv, "words": gEmbedding.Words, "positions": gEmbedding.Positions, "types": gEmbedding.Types,
		"Squares": norms, "AdamW": weights,
	} {
		out[name] = read(t, be, x, x.Len())
	}
	return out
}
