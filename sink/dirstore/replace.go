//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dirstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"giantstream/sink"
)

var _ sink.Replacer = (*Store)(nil)

// lockName is the file in an object's directory that Replace locks. '~' is in no key.
const lockName = "~lock"

// Replace implements sink.Replacer. It compares and writes under a lock on a file beside the object, which all
// processes on the same machine, and on most network file systems, respect.
func (s *Store) Replace(ctx context.Context, key string, old, data []byte) (err error) {
	if err := check(ctx, "replace", key); err != nil {
		return err
	}
	if _, err := os.Stat(s.path(key)); err != nil {
		return wrap("replace", key, err) // and makes no directory
	}
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(s.path(key)), lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return wrap("replace", key, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which unlocks it
	if err := flock(lock); err != nil {
		return wrap("replace", key, err)
	}
	stored, err := sink.ReadAll(ctx, s, key)
	if err != nil {
		return err
	}
	if done, err := sink.CompareStored(key, stored, old, data); done || err != nil {
		return err
	}
	return s.publish(ctx, "replace", key, bytes.NewReader(data), int64(len(data)), os.Rename)
}

// flock waits for the lock, which is held for as long as a small write takes.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
