package labeltree

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// flat is a clustering of one level: the cluster of each label.
type flat []int32

func (f flat) Levels() int                { return 1 }
func (f flat) Clusters(int) int           { return int(slices.Max(f)) + 1 }
func (f flat) Cluster(_, label int) int32 { return f[label] }

func everyLabel(n int) (shared []Shared) {
	for l := range int32(n) {
		shared = append(shared, Shared{l, l})
	}
	return shared
}

func TestMappingSaysWhereTheLabelsWent(t *testing.T) {
	from := flat{0, 0, 0, 0, 1, 1, 1, -1, 1}
	to := flat{5, 5, 2, 5, 2, 2, 2, 2, -1} // the last two are in one tree only
	got := Mapping(from, to, everyLabel(len(from)))
	want := []Flow{{0, 5, 3}, {0, 2, 1}, {1, 2, 3}}
	if len(got) != 1 || !slices.Equal(got[0].Flows, want) || got[0].Labels != 7 {
		t.Fatalf("got %+v, want flows %v of 7 labels", got, want)
	}
	if m := got[0].Matched(); math.Abs(m-6.0/7) > 1e-12 {
		t.Errorf("matched share %v, want 6/7", m)
	}
}

func TestLevelsOfAboutTheSameSizeAreCompared(t *testing.T) {
	rows := planted(600, 8, 8, 0.5)
	from := build(t, rows, 8, Options{Levels: []int{4, 64}})
	to := build(t, rows, 8, Options{Levels: []int{4, 16, 32}})
	got := Mapping(from, to, everyLabel(600))
	if len(got) != 2 || got[0].NewLevel != 0 || got[1].NewLevel != 2 {
		t.Errorf("levels 4, 64 were compared with levels %d and %d of 4, 16, 32", got[0].NewLevel, got[1].NewLevel)
	}
	if ami := got[0].AMI(); math.Abs(ami-1) > 1e-9 || got[0].Matched() != 1 {
		t.Errorf("the same clusters: AMI %v, matched %v", ami, got[0].Matched())
	}
}

func TestAMIOfUnrelatedClusteringsIsZero(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range []int{2, 20, 200} {
		from, to := make(flat, 1000), make(flat, 1000)
		for i := range from {
			from[i], to[i] = int32(i%k), int32(i%k)
		}
		r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
		if ami := Mapping(from, to, everyLabel(1000))[0].AMI(); math.Abs(ami) > 0.03 {
			t.Errorf("%d random clusters: AMI %v", k, ami)
		}
	}
}

// The expectation is by definition the mean over all permutations.
func TestExpectedMutualInformation(t *testing.T) {
	from, to := flat{0, 0, 0, 1, 1, 2, 2}, flat{0, 0, 0, 0, 1, 1, 2}
	n := float64(len(from))
	var total, times float64
	var permute func(k int)
	permute = func(k int) {
		if k < len(to) {
			for i := k; i < len(to); i++ {
				to[k], to[i] = to[i], to[k]
				permute(k + 1)
				to[k], to[i] = to[i], to[k]
			}
			return
		}
		size := map[int32]float64{0: 3, 1: 2, 2: 2}
		sizeNew := map[int32]float64{0: 4, 1: 2, 2: 1}
		for _, f := range Mapping(from, to, everyLabel(len(from)))[0].Flows {
			v := float64(f.Labels)
			total += v / n * math.Log(n*v/(size[f.Old]*sizeNew[f.New]))
		}
		times++
	}
	permute(0)
	got := expectedMutual(sizeCounts{{3, 1}, {2, 2}}, sizeCounts{{4, 1}, {2, 1}, {1, 1}}, len(from))
	if want := total / times; math.Abs(got-want) > 1e-12 {
		t.Errorf("expected mutual information %v, over %v permutations %v", got, times, want)
	}
}

func TestMappingOfTreesWithNothingInCommon(t *testing.T) {
	o := Mapping(flat{0, 1}, flat{0, 1}, nil)[0]
	if o.Labels != 0 || o.AMI() != 0 || o.Matched() != 0 {
		t.Errorf("no shared labels: %+v", o)
	}
	if ami := Mapping(flat{0, 0}, flat{0, 0}, everyLabel(2))[0].AMI(); ami != 1 {
		t.Errorf("one cluster each: AMI %v, want 1", ami)
	}
}
