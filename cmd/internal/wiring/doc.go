// Package wiring translates the configuration into the options of the packages below, which do not
// know it: names of topics, mapping of records, settings of generations, connections to brokers,
// schema registry and object store.
//
// No function leaves anything running, with one exception: [Attach] may start the embedded broker.
// Package service runs what is set up here.
package wiring
