// Package devices names the machines that run transformers, and opens them.
//
// A name is "cpu", or a kind with or without a number: "cuda" (the first GPU), "cuda:1" (the
// second). The CPU is always there. Every other kind needs a Driver, which the program links and
// passes down: there is no registry, so that the ordinary program links no driver.
//
//	drivers := devices.Drivers{"cuda": open}
//	d, err := drivers.Open("cuda:1", devices.Options{Memory: 8 << 30})
//	…
//	defer d.Close()
//
// A device outlives the models and tuners on it.
package devices
