package service

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"giantstream/cmd/internal/buildinfo"
)

// newRegistry returns a registry of metrics with those of the program itself. The parts add theirs. Names follow
// Prometheus' conventions.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := buildinfo.Read()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_build_info",
			Help: "1, with the program's version, its source's revision and the version of Go as labels.",
			ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision,
				"goversion": build.Go}},
			func() float64 { return 1 }))
	return r
}
