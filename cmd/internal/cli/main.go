package cli

import (
	"context"
	"os"

	"giantstream/cmd/internal/cli/command"
	"giantstream/train/encoders/bert/compute/devices"
)

// Main runs the command line of this process and returns its exit code. Transformers run on the CPU
// and on the devices that the program has drivers of.
func Main(drivers devices.Drivers) int {
	return command.UntilSignal(func(ctx context.Context) int {
		return Run(ctx, os.Args[1:], os.Stdout, os.Stderr, drivers)
	})
}
