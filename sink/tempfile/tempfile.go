// Package tempfile makes temporary files that end with the process, even one
// that is killed: a service that crashes over and over must not fill the disk.
package tempfile

import (
	"errors"
	"os"
)

// File is a temporary file, open for reading and writing. Close it once; it
// is gone then.
type File struct {
	*os.File
	left string // its name, if it still has one
}

// Create makes a temporary file in the system's directory for them. The
// pattern is that of os.CreateTemp.
func Create(pattern string) (*File, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, err
	}
	file := &File{File: f}
	// Where the system allows it, the file loses its name at once and lives on
	// for as long as it is open.
	if os.Remove(f.Name()) != nil {
		file.left = f.Name()
	}
	return file, nil
}

// Close closes the file and removes what is left of it.
func (f *File) Close() error {
	err := f.File.Close()
	if f.left != "" {
		err = errors.Join(err, os.Remove(f.left))
	}
	return err
}
