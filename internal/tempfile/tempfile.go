// Package tempfile makes temporary files that vanish with the process, even if it is killed: a
// service that crashes over and over must not fill the disk.
package tempfile

import (
	"errors"
	"os"
)

// File is a temporary file, open for reading and writing. Close must be called once and removes the
// file.
type File struct {
	*os.File
	name string // empty if the file has no name any more
}

// Create makes a temporary file in the system's directory for temporary files. The pattern is that
// of os.CreateTemp.
func Create(pattern string) (*File, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, err
	}
	file := &File{File: f}
	// Where the system allows it, the file loses its name now and exists for as long as it is open.
	if os.Remove(f.Name()) != nil {
		file.name = f.Name()
	}
	return file, nil
}

// Close closes the file and removes it.
func (f *File) Close() error {
	err := f.File.Close()
	if f.name != "" {
		err = errors.Join(err, os.Remove(f.name))
	}
	return err
}
