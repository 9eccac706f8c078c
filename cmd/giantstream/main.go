// Command giantstream turns node texts and edges, streamed or from files, into graph-aware
// embeddings. `giantstream help` lists what it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/numeric/blas"
)

func main() {
	keepPrivate()
	blas32.Use(blas.New())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills: stop gives the default behaviour back.
	context.AfterFunc(ctx, stop)
	code := Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
