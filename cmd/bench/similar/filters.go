package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"giantstream/train/nearest"
	"giantstream/train/numeric"
)

// filtered is how a filter is answered, a line of JSON.
type filtered struct {
	Place  string  `json:"matches_lie"`
	Share  float64 `json:"share"`
	Recall float64 `json:"recall_at_10"` // of the nearest that match, by inner products in float32
	P50    float64 `json:"p50_cpu_ms"`
	P99    float64 `json:"p99_cpu_ms"`
}

// timed searches three times, and returns the shortest time of the processor in milliseconds.
func timed(x *nearest.Index, query []float32, in []uint64) (found []nearest.Neighbour, ms float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() float64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // every Linux has it
		return float64(t.Nano()) / 1e6
	}
	ms = math.Inf(1)
	for range 3 {
		began := used()
		found = x.Search(query, k, in, nil)
		ms = min(ms, used()-began)
	}
	return found, ms
}

// measureFilters asks for the nearest of some of the vectors: of any, of those that lie about the query's nearest, and
// of those about the farthest of some vectors, as when something is wanted of another category.
func measureFilters(x *nearest.Index, vectors, asked []float32, dim, queries int) error {
	n := len(vectors) / dim
	rng := rand.New(rand.NewPCG(3, 3))
	cosines := func(v []float32) []float32 {
		out := make([]float32, n)
		numeric.Gemm(numeric.TransB, 1, n, dim, v, vectors, out)
		return out
	}
	results := map[[2]int]*filtered{}
	took := map[[2]int][]float64{}
	places := []string{"anywhere", "near", "far"}
	shares := []float64{1, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 0.0001}
	for q := range queries {
		query := asked[q*dim : (q+1)*dim]
		score := cosines(query)
		for p, place := range places {
			value := make([]float32, n)
			switch place {
			case "anywhere":
				for i := range value {
					value[i] = rng.Float32()
				}
			case "near", "far":
				about := slices.Index(score, slices.Max(score))
				for range 100 {
					if i := rng.IntN(n); place == "far" && score[i] < score[about] {
						about = i
					}
				}
				value = cosines(vectors[about*dim : (about+1)*dim])
			}
			ordered := slices.Sorted(slices.Values(value))
			for s, share := range shares {
				in, best := make([]uint64, (n+63)/64), []float32{}
				for i, v := range value {
					if v >= ordered[n-int(share*float64(n))] {
						in[i/64] |= 1 << (i % 64)
						best = append(best, score[i])
					}
				}
				slices.Sort(best)
				least := best[max(0, len(best)-k)]
				key := [2]int{p, s}
				if results[key] == nil {
					results[key] = &filtered{Place: place, Share: share}
				}
				found, ms := timed(x, query, in)
				took[key] = append(took[key], ms)
				for _, m := range found {
					if score[number(m.ID)] >= least {
						results[key].Recall += 1 / float64(queries*min(k, len(best)))
					}
				}
			}
		}
	}
	var plain []float64
	for q := range queries {
		_, ms := timed(x, asked[q*dim:(q+1)*dim], nil)
		plain = append(plain, ms)
	}
	slices.Sort(plain)
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(filtered{Place: "no filter", P50: plain[queries/2], P99: plain[queries*99/100]}); err != nil {
		return err
	}
	for p := range places {
		for s := range shares {
			key := [2]int{p, s}
			times := slices.Sorted(slices.Values(took[key]))
			results[key].P50, results[key].P99 = times[len(times)/2], times[len(times)*99/100]
			if err := out.Encode(results[key]); err != nil {
				return err
			}
		}
	}
	return nil
}
