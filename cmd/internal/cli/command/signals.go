package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/numeric/blas"
)

// UntilSignal runs do until it ends, with a context that ends with the first signal.
func UntilSignal(do func(context.Context) int) int {
	keepPrivate()
	blas32.Use(blas.New())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal kills: stop gives the default behaviour back.
	context.AfterFunc(ctx, stop)
	return do(ctx)
}
