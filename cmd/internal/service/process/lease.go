package process

import (
	"log/slog"

	"giantstream/sink"
	"giantstream/sink/lease"
)

// Lease opens the lease with this name for this process.
func Lease(store sink.Store, name string, log *slog.Logger) (*lease.Lease, error) {
	return lease.New(lease.Options{Store: store, Name: name, Holder: Name(), Process: ID(), Ended: Ended, Log: log})
}
