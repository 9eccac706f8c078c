package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the file system that a storage engine sees. It does three things:
//
//   - It notices a full disk and other faults, whatever the engine makes of them, and stands still
//     from then on: what is on the disk stays as after a crash at that moment. It reports success of
//     later writes to the engine, which crashes on some that fail (Pebble 2.1.7,
//     blob.FileWriter.Close). None of these writes counts: the guard has failed, and the shard ends.
//   - It can be severed. An engine that was left behind then changes nothing any more, and the next
//     one can use the same paths.
//   - It keeps a checksum of every file of keys or values, so that a checkpoint can tell whether the
//     file is still what the engine wrote.
type FS struct {
	vfs.FS
	guard *Guard

	// A change of a directory holds a read lock, so that none is under way when Sever returns. Open
	// files stay with their directory, which has another name by then.
	mu      sync.RWMutex
	severed bool

	sums sync.Map // base name → uint32, the CRC-32C of a whole file of keys or values
}

var errSevered = errors.New("storage engine was left behind")

// IsData reports whether a file of this name holds keys or values. Such a file never changes, and the
// engine opens none that it does not need.
func IsData(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// NewFS returns the file system of an engine on a disk, which reports to guard.
func NewFS(disk vfs.FS, guard *Guard) *FS { return &FS{FS: disk, guard: guard} }

// Sever makes all later calls fail, or do nothing.
func (f *FS) Sever() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.severed = true
}

// changing calls a function that changes a directory, unless the file system is severed or stands
// still.
func (f *FS) changing(call func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.severed || f.guard.Failure() != nil {
		return nil
	}
	return f.note(call())
}

// note passes on an error. One that means that the engine cannot go on goes to the guard as well,
// because the engine may report it without its cause.
func (f *FS) note(err error) error {
	if failure := FileFailure(err); failure != nil {
		f.guard.Fail(failure)
	}
	return err
}

// Create implements vfs.FS.
func (f *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.making(name, func() (vfs.File, error) { return f.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (f *FS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.making(to, func() (vfs.File, error) { return f.FS.ReuseForWrite(from, to, category) })
}

// OpenReadWrite implements vfs.FS.
func (f *FS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	return f.making(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

// making calls a function that makes a file. If the file system stands still, the file is in memory,
// and stays empty.
func (f *FS) making(name string, call func() (vfs.File, error)) (vfs.File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.severed && f.guard.Failure() == nil {
		file, err := call()
		if err == nil {
			made := &guardedFile{File: file, fs: f}
			if isManifest(f.PathBase(name)) {
				made.manifest = name
			}
			if IsData(name) {
				made.created = f.PathBase(name)
				f.sums.Delete(made.created)
				made.buffer = buffers.Get().(*bufio.Writer)
				made.buffer.Reset(file)
			}
			return made, nil
		}
		f.guard.Fail(Failure(err))
	}
	file, err := vfs.NewMem().Create(f.PathBase(name), vfs.WriteCategoryUnspecified)
	return &guardedFile{File: file, fs: f}, err
}

// reading calls a function that opens a file or a directory.
func (f *FS) reading(call func() (vfs.File, error)) (vfs.File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.severed {
		return nil, errSevered
	}
	file, err := call()
	if err != nil {
		return nil, f.note(err)
	}
	return &guardedFile{File: file, fs: f}, nil
}

// OpenDir implements vfs.FS.
func (f *FS) OpenDir(name string) (vfs.File, error) {
	return f.reading(func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

// Open implements vfs.FS.
func (f *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.reading(func() (vfs.File, error) { return f.FS.Open(name, opts...) })
	if errors.Is(err, fs.ErrNotExist) && IsData(name) {
		f.guard.Fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	if err == nil && strings.HasSuffix(name, ".blob") {
		if err := f.checkValues(name); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, err
}

// checkValues reads the end of a file of values. The engine panics if it finds damage there, in
// whichever goroutine opens the file (Pebble 2.1.7, findOrCreateBlob). An error that it does not know
// for damage is passed on.
func (f *FS) checkValues(name string) error {
	file, err := f.FS.Open(name)
	if err != nil {
		return f.note(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(f.note(err), file.Close())
	}
	r, err := blob.NewFileReader(context.Background(), readable, blob.FileReaderOptions{})
	if err == nil {
		return r.Close()
	}
	f.guard.Fail(fmt.Errorf("%w: %s: %w", ErrDamaged, f.PathBase(name), err))
	return errors.Join(fmt.Errorf("%s: %v", name, err), readable.Close()) //nolint:errorlint // see above
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	return f.changing(func() error { return f.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (f *FS) RemoveAll(name string) error {
	return f.changing(func() error { return f.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (f *FS) Rename(from, to string) error {
	return f.changing(func() error { return f.FS.Rename(from, to) })
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string, perm os.FileMode) error {
	return f.changing(func() error { return f.FS.MkdirAll(dir, perm) })
}

// Link is noted only if the disk is full: the engine copies what cannot be linked.
func (f *FS) Link(from, to string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.severed || f.guard.Failure() != nil {
		return errSevered
	}
	err := f.FS.Link(from, to)
	if failure := FileFailure(err); errors.Is(failure, ErrDiskFull) {
		f.guard.Fail(failure)
	}
	return err
}

// Lock does nothing: the state holds the lock, since it outlives the engine.
func (f *FS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap implements vfs.FS.
func (f *FS) Unwrap() vfs.FS { return f.FS }

// Sum returns the CRC-32C of what the engine has written to a file that it has closed. ok is false
// for files that this engine did not write.
func (f *FS) Sum(base string) (crc uint32, ok bool) {
	v, ok := f.sums.Load(base)
	if !ok {
		return 0, false
	}
	return v.(uint32), true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeBytes is the size of the pieces in which files of keys or values go to the disk. The
// engine's own have 4 KiB.
const writeBytes = 256 << 10

var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBytes) }}

// guardedFile is a file of an FS.
type guardedFile struct {
	vfs.File
	fs      *FS
	created string // base name of a file that was made and is written in order; else ""
	crc     uint32
	// manifest is the path of a manifest, else "", and written its length.
	manifest string
	written  int64
	// buffer holds what is not written yet, nil for files that others read while they are written. Every
	// sync writes it, and so does Close.
	buffer *bufio.Writer
}

func (f *guardedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	return n, f.fs.note(err)
}

func (f *guardedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	return n, f.fs.note(err)
}

func (f *guardedFile) Write(p []byte) (int, error) {
	size := len(p)
	if f.created != "" { // before the call, which may change p
		f.crc = crc32.Update(f.crc, castagnoli, p)
	}
	f.written += int64(size)
	return size, f.writing(func() error {
		var w io.Writer = f.File
		if f.buffer != nil {
			w = f.buffer
		}
		_, err := w.Write(p)
		return err
	})
}

func (f *guardedFile) WriteAt(p []byte, off int64) (int, error) {
	f.created = ""
	return len(p), f.afterWrites(func() error {
		_, err := f.File.WriteAt(p, off)
		return err
	})
}

func (f *guardedFile) Sync() error     { return f.sync(f.File.Sync) }
func (f *guardedFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *guardedFile) sync(call func() error) error {
	return f.afterWrites(func() error {
		err := call()
		if err == nil && f.manifest != "" {
			err = f.fs.noteManifest(f.manifest, f.written)
		}
		return err
	})
}

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	return full, f.afterWrites(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
}

// Preallocate is a hint, whose errors the engine handles.
func (f *guardedFile) Preallocate(offset, length int64) error {
	if f.fs.guard.Failure() != nil {
		return nil //nolint:nilerr // it stands still, see FS
	}
	return f.File.Preallocate(offset, length)
}

func (f *guardedFile) Close() error {
	_ = f.afterWrites(func() error { return nil }) // an error goes to the guard
	if f.buffer != nil {
		f.buffer.Reset(nil)
		buffers.Put(f.buffer)
		f.buffer = nil
	}
	if err := f.File.Close(); err != nil {
		f.fs.guard.Fail(Failure(err))
	}
	if f.created != "" && f.fs.guard.Failure() == nil {
		f.fs.sums.Store(f.created, f.crc)
	}
	return nil
}

// afterWrites is writing, once what the buffer holds is written.
func (f *guardedFile) afterWrites(call func() error) error {
	return f.writing(func() error {
		if f.buffer != nil {
			if err := f.buffer.Flush(); err != nil {
				return err
			}
		}
		return call()
	})
}

// writing calls a function that writes, unless the file system stands still. An error goes to the
// guard alone.
func (f *guardedFile) writing(call func() error) error {
	if f.fs.guard.Failure() != nil {
		return nil //nolint:nilerr // it stands still, see FS
	}
	if err := call(); err != nil {
		f.fs.guard.Fail(Failure(err))
	}
	return nil
}
