package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/numeric/blas"
)

// Main runs the command line of this process and returns its exit code. Transformers run on the CPU
// and on the devices that the program has drivers of.
func Main(drivers devices.Drivers) int {
	return onSignals(func(ctx context.Context) int { return Run(ctx, os.Args[1:], os.Stdout, os.Stderr, drivers) })
}

// onSignals runs do until it ends, with a context that ends with the first signal.
func onSignals(do func(context.Context) int) int {
	keepPrivate()
	blas32.Use(blas.New())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal kills: stop gives the default behaviour back.
	context.AfterFunc(ctx, stop)
	return do(ctx)
}
