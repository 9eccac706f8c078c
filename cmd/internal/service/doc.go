// Package service is the composition root of a process of a pipeline. [Start] opens the parts, which are structs whose
// exported fields are their inputs, and runs them in one group:
//
//   - ingesting: a consumer group, shards, windows. It gives manifests, of which package heads tells the others.
//   - refreshing: drift, the lease, builds, the choice of people. It gives the generation that is served.
//   - publishing: followers, which give cursors.
//   - answering: the index of similar items, and HTTP.
//
// [Service.Run] then serves until its context ends. To bring everything
// up to date and stop instead, as run --until-idle and the quickstart do, call [Service.Drain],
// [Service.UpToDate] and [Service.WaitPublished] in this order. [Service.Close] ends either.
//
// Package wiring translates the configuration for the packages below, which do not know it.
package service
