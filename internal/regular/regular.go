// Package regular opens files whose names come from a user, and refuses what is not a regular file.
// A pipe, socket or device has no size and no second reading, and opening or reading it may wait
// forever where no signal ends it.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular: the name is that of a directory, pipe, socket or device.
var ErrNotRegular = errors.New("not a regular file")

// Check returns an error that says what the file is, unless it is regular.
func Check(name string, info fs.FileInfo) error {
	var kind string
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a directory"
	case m&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	default:
		kind = m.Type().String()
	}
	return fmt.Errorf("%s is %s: %w; it is read by size and position, so write what it gives to a file first",
		name, kind, ErrNotRegular)
}

// Open opens a regular file for reading, and never waits.
func Open(name string) (*os.File, error) {
	// Without O_NONBLOCK the opening of a pipe waits for its writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info, statErr := os.Stat(name); statErr == nil && !info.Mode().IsRegular() {
			return nil, Check(name, info) // a socket cannot be opened at all
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Check(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// DirFS is os.DirFS(dir) of which only regular files can be opened.
func DirFS(dir string) fs.FS { return dirFS(dir) }

type dirFS string

// Open implements fs.FS.
func (d dirFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return Open(filepath.Join(string(d), filepath.FromSlash(name)))
}
