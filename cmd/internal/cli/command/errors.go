package command

import (
	"fmt"
	"strings"

	"giantstream/stream/commitlog"
)

// Exit codes, documented in `giantstream help exit-codes`.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitLost        = 3
	ExitInterrupted = 130
)

// usageError is an error in the command line or the configuration. Running the same command again
// cannot help.
type usageError struct{ err error }

// UsageError marks an error as one of usage.
func UsageError(err error) error { return usageError{err} }

func (e usageError) Error() string { return e.err.Error() }

func (e usageError) Unwrap() error { return e.err }

// LossError says that a command has done all that it could, and that records are missing for good.
type LossError struct {
	Lost   []commitlog.ShardLost
	Shrunk string
}

func (e LossError) Error() string {
	const most = 10
	var b strings.Builder
	b.WriteString("finished, but records are missing.")
	if e.Shrunk != "" {
		fmt.Fprintf(&b, "\nWithout a trace: %s. Run the same command with all files.", e.Shrunk)
	}
	if len(e.Lost) == 0 {
		return b.String()
	}
	b.WriteString("\nThe topics deleted these before they were read:")
	for i, l := range e.Lost {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more ranges: see 'giantstream status'", len(e.Lost)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s", l)
	}
	b.WriteString("\nSend them again if you can, raise the topic's retention, and accept the loss with " +
		"'giantstream run --accept-loss TOPIC'")
	return b.String()
}
