package broker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kfake"
)

// ErrLocked: another process runs a broker on the same directory.
var ErrLocked = errors.New("broker directory is in use")

// ErrDiskFull: there is not enough space for the broker's log. What the broker has acknowledged is in it.
var ErrDiskFull = errors.New("disk of the embedded broker is full")

// reserveBytes is the space below which the log counts as full. The broker answers a write that does not fit
// with an error that names no cause, and a write may be as large as a record of backfill.
const reserveBytes = 16 << 20

// Options configure an embedded broker.
type Options struct {
	// Dir keeps the log. It is created if missing.
	Dir string
	// Port on 127.0.0.1; 0 takes a free port, a different one at each start. Clients that outlive
	// the broker need a fixed port.
	Port int
	// Log receives the broker's warnings; nil discards them.
	Log *slog.Logger
	// Free returns the bytes that are free on the disk of a directory; nil asks the system.
	Free func(dir string) (uint64, error)
}

// maxMessageBytes is the largest batch the broker takes. It is well over Kafka's default of 1 MiB,
// so that records over the pipeline's own limits arrive and are dead-lettered, as on a real cluster
// with a raised limit.
const maxMessageBytes = "67108864"

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	members *lostMembers
	lock    io.Closer
	dir     string
	free    func(dir string) (uint64, error)
}

// Start opens the log in o.Dir and serves it; ErrDiskFull if there is no space for more of it.
func Start(o Options) (*Broker, error) {
	if o.Dir == "" {
		return nil, errors.New("embedded broker: no directory given")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	lock, err := vfs.Default.Lock(filepath.Join(o.Dir, "LOCK"))
	if _, unopened := errors.AsType[*fs.PathError](err); unopened {
		return nil, fmt.Errorf("embedded broker: %w; make the directory writable or choose another one", err)
	}
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w: %s (%w); stop the other process or choose another directory",
			ErrLocked, o.Dir, err)
	}
	b := &Broker{lock: lock, dir: o.Dir, free: o.Free}
	if b.free == nil {
		b.free = freeSpace
	}
	if err := b.CheckSpace(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	cluster, err := kfake.NewCluster(
		kfake.Ports(o.Port),
		kfake.ClusterID("giantstream"),
		kfake.DataDir(filepath.Join(o.Dir, "log")),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": maxMessageBytes}),
		kfake.WithLogger(logger{o.Log}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded broker in %s: %w", o.Dir, err), lock.Close())
	}
	b.cluster = cluster
	if b.members, err = watchMembers(cluster); err != nil {
		cluster.Close()
		return nil, errors.Join(fmt.Errorf("embedded broker: %w", err), lock.Close())
	}
	return b, nil
}

// CheckSpace returns ErrDiskFull, with what to do, if there is no space for more of the log. It may be called
// after Close.
func (b *Broker) CheckSpace() error {
	free, err := b.free(b.dir)
	if err != nil || free >= reserveBytes {
		return nil //nolint:nilerr // not every file system says how much is free
	}
	return fmt.Errorf("%w: %s has %d MiB free, and the broker needs %d MiB to go on; free space, or move the "+
		"directory and set kafka.data_dir, then start again: what was acknowledged is kept", ErrDiskFull, b.dir,
		free>>20, reserveBytes>>20)
}

func freeSpace(dir string) (uint64, error) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err
}

// Addrs returns the addresses to bootstrap clients from.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Close stops the broker and syncs its log. Close it once.
func (b *Broker) Close() error {
	b.members.close()
	b.cluster.Close()
	return b.lock.Close()
}

// logger forwards the broker's warnings and errors.
type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	if l.log == nil {
		return
	}
	msg := fmt.Sprintf(format, args...)
	switch level {
	case kfake.LogLevelError:
		l.log.Error(msg, "component", "embedded broker")
	case kfake.LogLevelWarn:
		l.log.Warn(msg, "component", "embedded broker")
	}
}
