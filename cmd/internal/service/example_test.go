package service_test

import (
	"context"
	"fmt"
	"log/slog"

	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

// The service runs until its context ends.
func Example() {
	ctx := context.Background()
	s := start(ctx)
	defer s.Close() //nolint:errcheck // an example
	fmt.Println(s.Run(ctx))
}

// run --until-idle and the quickstart bring everything up to date and stop.
func ExampleService_Drain() {
	ctx := context.Background()
	s := start(ctx)
	defer s.Close()                      //nolint:errcheck // an example
	if err := s.Drain(ctx); err != nil { // all that was sent is committed
		panic(err)
	}
	doc, _, err := s.UpToDate(ctx) // a generation on it is ready
	if err != nil {
		panic(err)
	}
	fmt.Println(doc.Generation, s.WaitPublished(ctx)) // and its embeddings are on the sink topic
}

func start(ctx context.Context) *service.Service {
	cfg := config.Default()
	store, err := wiring.OpenStore(ctx, &cfg)
	if err != nil {
		panic(err)
	}
	s, err := service.Start(ctx, service.Options{Config: &cfg, Store: store, Log: slog.Default()})
	if err != nil {
		panic(err)
	}
	return s
}
