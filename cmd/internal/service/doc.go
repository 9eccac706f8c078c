// Package service is the composition root: it wires broker, consumer group,
// shards, followers and refresh into one process of a pipeline.
//
//	s, err := service.Start(ctx, service.Options{Config: cfg, Store: store, Log: log})
//	defer s.Close()
//	err = s.Run(ctx)              // the service: until ctx ends
//
// or, to bring everything up to date and stop (run --until-idle, quickstart):
//
//	err = s.Drain(ctx)            // all that was sent is committed
//	doc, _, err := s.UpToDate(ctx) // a generation on it is ready
//	err = s.WaitPublished(ctx)    // and its embeddings are on the sink topic
//
// It translates the configuration for the packages below, which do not know it.
package service
