package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"giantstream/sink"
)

// Store is a sink.Store in a directory.
type Store struct {
	sink.Membership
	root string
}

var _ sink.Store = (*Store)(nil)

// Open makes the directory if need be and returns the store in it.
func Open(root string) (*Store, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store directory %q: %w", root, err)
	}
	if err := os.MkdirAll(abs, dirMode); err != nil {
		return nil, fmt.Errorf("open store directory %q: %w", root, err)
	}
	return &Store{root: abs}, nil
}

// URL returns file:// and the absolute path.
func (s *Store) URL() string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(s.root)}
	return u.String()
}

// Put implements sink.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	return s.publish(ctx, "put", key, r, size, os.Rename)
}

// Create implements sink.Store.
func (s *Store) Create(ctx context.Context, key string, data []byte) error {
	err := s.publish(ctx, "create", key, bytes.NewReader(data), int64(len(data)), os.Link)
	if errors.Is(err, fs.ErrExist) {
		return sink.ConfirmCreate(ctx, s, key, data)
	}
	return err
}

// publish writes a temporary file and gives it the object's name: by rename, which replaces, or by
// link, which does not.
func (s *Store) publish(
	ctx context.Context, op, key string, r io.Reader, size int64, name func(temp, final string) error,
) error {
	if err := check(ctx, op, key); err != nil {
		return err
	}
	final := s.path(key)
	dir := filepath.Dir(final)
	temp, err := makeTemp(ctx, dir, r, size)
	if err != nil {
		return wrap(op, key, err)
	}
	defer os.Remove(temp) //nolint:errcheck // gone after a rename; List ignores it otherwise
	if err := name(temp, final); err != nil {
		return wrap(op, key, err)
	}
	return wrap(op, key, syncDir(dir))
}

// Open implements sink.Store.
func (s *Store) Open(ctx context.Context, key string) (sink.Object, error) {
	if err := check(ctx, "open", key); err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(key))
	if err != nil {
		return nil, wrap("open", key, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = sink.ErrNotFound
	}
	if err != nil {
		return nil, wrap("open", key, errors.Join(err, f.Close()))
	}
	return &object{File: f, ctx: ctx, key: key, size: info.Size()}, nil
}

// Delete implements sink.Store. It removes directories that have become empty.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	err := wrap("delete", key, os.Remove(s.path(key)))
	if err != nil && !errors.Is(err, sink.ErrNotFound) {
		return err
	}
	// A directory with anything in it cannot be removed, a temporary file included. So no object is in the way,
	// and makeTemp begins again if its directory goes before its file is there.
	for dir := filepath.Dir(s.path(key)); len(dir) > len(s.root) && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

func (s *Store) path(key string) string {
	return filepath.Join(s.root, filepath.FromSlash(key))
}

// object is an open file. Renaming another file over its name does not disturb it, so its reads
// never fail with sink.ErrChanged.
type object struct {
	*os.File
	ctx  context.Context // of Open: reads end with it
	key  string
	size int64
}

func (o *object) Size() int64 { return o.size }

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, wrap("read", o.key, err)
	}
	n, err := o.File.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = wrap("read", o.key, err)
	}
	return n, err
}

func check(ctx context.Context, op, key string) error {
	if err := sink.CheckKey(key); err != nil {
		return wrap(op, key, err)
	}
	return wrap(op, key, ctx.Err())
}

// wrap makes a sink.Error. Errors of the file system that mean "no such file" become ErrNotFound
// (ENOTDIR: a directory of the path is a file).
func wrap(op, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR) && (op == "open" || op == "delete"):
		err = fmt.Errorf("%w (%w)", sink.ErrNotFound, err)
	case errors.Is(err, syscall.ENOSPC):
		return &sink.Error{Op: op, Key: key, Err: err, Hint: "free space on the store's disk, then start again: " +
			"nothing is lost"}
	}
	return &sink.Error{Op: op, Key: key, Err: err}
}
