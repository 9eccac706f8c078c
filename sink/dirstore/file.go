package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// tempPattern names temporary files: '~' is in no key.
const tempPattern = "~*.tmp"

// directoryRetries bounds how often a directory may vanish between its making and the first file in it.
const directoryRetries = 100

// makeTemp makes the directory, if need be, and writes a temporary file in it.
func makeTemp(ctx context.Context, dir string, r io.Reader, size int64) (path string, err error) {
	for attempt := 0; ; attempt++ {
		if err = makeDir(dir); err == nil {
			path, err = writeTemp(ctx, dir, r, size)
		}
		if !errors.Is(err, fs.ErrNotExist) || attempt == directoryRetries {
			return path, err
		}
	}
}

// writeTemp copies exactly size bytes of r into a new, synced temporary file in dir and returns its
// path.
func writeTemp(ctx context.Context, dir string, r io.Reader, size int64) (path string, err error) {
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return "", err // nothing has been read
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	// One byte more than promised, to notice a reader that has too much.
	n, err := io.Copy(f, io.LimitReader(contextReader{ctx, r}, size+1))
	if err != nil {
		return "", err
	}
	if n != size {
		return "", fmt.Errorf("the reader gave %s than the %d bytes promised", moreOrLess(n > size), size)
	}
	return f.Name(), f.Sync() // CreateTemp has made it private
}

func moreOrLess(more bool) string {
	if more {
		return "more"
	}
	return "fewer"
}

// contextReader ends with its context, so that a long copy can be cancelled.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// dirMode: objects hold texts, and are their owner's alone.
const dirMode = 0o700

// makeDir is os.MkdirAll that syncs the parent of each directory it makes: an object must not
// vanish in a crash along with the entry of its directory.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is an object, so no object can be stored below it", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
