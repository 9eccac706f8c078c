package labeltree_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/graphdir/graphdirtest"
)

// BenchmarkDebian builds 1,024 leaves over the PIFA of 63,666 packages from
// different features, and measures all trees in the exact space: cosine is
// the mean over the labels to their own leaf's sum of exact PIFA.
func BenchmarkDebian(b *testing.B) {
	g := graphdirtest.Load(b, "debian-packages")
	for _, profile := range []struct {
		name string
		opt  tfidf.Options
	}{{"pecos", tfidf.PECOSOptions()}, {"default", tfidf.DefaultOptions()}} {
		x := vectors(b, g.Texts, profile.opt)
		exact := pifa.Exact(x, g.Neighbours, pifa.InverseSqrtDegree, 0)
		run := func(name string, features func() labeltree.Features) {
			b.Run(profile.name+"/"+name, func(b *testing.B) {
				var cosine float64
				var took, all time.Duration
				for b.Loop() {
					begin := time.Now()
					f := features()
					built := time.Now()
					tree, err := labeltree.Build(f, labeltree.Options{Levels: []int{1024}, Seed: 1})
					if err != nil {
						b.Fatal(err)
					}
					took += time.Since(built)
					all += time.Since(begin)
					cosine = tree.MeanCosine(0, labeltree.Sparse(exact), 0)
				}
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				b.ReportMetric(cosine, "cosine")
				b.ReportMetric(took.Seconds()/float64(b.N), "tree-s")
				b.ReportMetric(all.Seconds()/float64(b.N), "sketch+tree-s")
				b.ReportMetric(float64(mem.Sys)/(1<<20), "peak-MiB-so-far")
			})
		}
		sketched := func(p *projection.Projection) func() labeltree.Features {
			return func() labeltree.Features {
				s, err := pifa.FromGraph(p.ApplyAll(x, 0), p.Dim(), g.Neighbours, pifa.InverseSqrtDegree, 0)
				if err != nil {
					b.Fatal(err)
				}
				f, err := labeltree.Dense(s.Normalized(), p.Dim())
				if err != nil {
					b.Fatal(err)
				}
				return f
			}
		}
		fitted, err := projection.Fit(x, 256, projection.Options{})
		if err != nil {
			b.Fatal(err)
		}
		run("fitted-256", sketched(fitted))
		for _, dim := range []int{512, 1024} {
			random, err := projection.Random(x.Cols, dim, 1)
			if err != nil {
				b.Fatal(err)
			}
			run("random-"+map[int]string{512: "512", 1024: "1024"}[dim], sketched(random))
		}
		run("exact", func() labeltree.Features { return labeltree.Sparse(exact) })
	}
}

// BenchmarkSample builds the tree over the sketch of debian-packages with the
// directions of its upper cuts from samples of several sizes.
func BenchmarkSample(b *testing.B) {
	const dim = 256
	g := graphdirtest.Load(b, "debian-packages")
	x := vectors(b, g.Texts, tfidf.DefaultOptions())
	exact := pifa.Exact(x, g.Neighbours, pifa.InverseSqrtDegree, 0)
	p, err := projection.Fit(x, dim, projection.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := pifa.FromGraph(p.ApplyAll(x, 0), dim, g.Neighbours, pifa.InverseSqrtDegree, 0)
	if err != nil {
		b.Fatal(err)
	}
	f, err := labeltree.Dense(s.Normalized(), dim)
	if err != nil {
		b.Fatal(err)
	}
	for _, features := range []struct {
		name string
		rows labeltree.Features
	}{{"sketch", f}, {"exact", labeltree.Sparse(exact)}} {
		for _, sample := range []int{-1, 20_000, 10_000, 5_000, 2_000} {
			b.Run(fmt.Sprintf("%s/%d", features.name, sample), func(b *testing.B) {
				var cosines [2]float64
				var cpu time.Duration
				for seed := uint64(1); b.Loop(); seed++ {
					begin := cpuTime(b)
					tree, err := labeltree.Build(features.rows, labeltree.Options{Levels: []int{16, 1024},
						Sample: sample, Seed: seed})
					if err != nil {
						b.Fatal(err)
					}
					cpu += cpuTime(b) - begin
					for level := range cosines {
						cosines[level] += tree.MeanCosine(level, labeltree.Sparse(exact), 0)
					}
				}
				b.ReportMetric(cpu.Seconds()/float64(b.N), "CPU-s")
				b.ReportMetric(cosines[0]/float64(b.N), "cosine-of-16")
				b.ReportMetric(cosines[1]/float64(b.N), "cosine-of-1024")
			})
		}
	}
}

// cpuTime of this process: says more than the clock on a machine that is shared.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func vectors(b *testing.B, texts []string, opt tfidf.Options) *sparse.Matrix {
	b.Helper()
	f, err := tfidf.NewFitter(opt)
	if err != nil {
		b.Fatal(err)
	}
	f.AddAll(texts, 0)
	m, err := f.Fit()
	if err != nil {
		b.Fatal(err)
	}
	return m.TransformAll(texts, 0)
}
