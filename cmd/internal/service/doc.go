// Package service is the composition root: it runs broker, consumer group, shards, followers and
// refresh as one process of a pipeline.
//
// [Start] opens everything. [Service.Run] then serves until its context ends. To bring everything
// up to date and stop instead, as run --until-idle and the quickstart do, call [Service.Drain],
// [Service.UpToDate] and [Service.WaitPublished] in this order. [Service.Close] ends either.
//
// Package wiring translates the configuration for the packages below, which do not know it.
package service
