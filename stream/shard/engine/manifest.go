package engine

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The engine takes the end of the file for the end of its manifest. A manifest that was cut between two records, while
// the engine had it open or afterwards, is an older list of tables, or one with a gap, and reads without an error. So a
// file beside it says how much of it was on the disk.

// syncedName is the file that says how long the manifest is at least: its name and its bytes.
const syncedName = "manifest.synced"

func isManifest(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// noteManifest notes how much of a manifest is on the disk. What a crash leaves of the note is an earlier one, or
// nothing.
func (f *FS) noteManifest(path string, bytes int64) error {
	dir, base := f.PathDir(path), f.PathBase(path)
	note, err := f.FS.Create(f.PathJoin(dir, syncedName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(note, "%s %d\n", base, bytes)
	return errors.Join(err, note.Close())
}

// checkLength returns ErrDamaged if a manifest is shorter than it was.
func checkLength(dirs vfs.FS, dir, manifest string) error {
	note, err := dirs.Open(dirs.PathJoin(dir, syncedName))
	if err != nil {
		return nil //nolint:nilerr // a state of an earlier release, or restored from a checkpoint, has none
	}
	text, err := io.ReadAll(io.LimitReader(note, 256))
	if err := errors.Join(err, note.Close()); err != nil {
		return Failure(err)
	}
	var name string
	var bytes int64
	if n, err := fmt.Sscanf(string(text), "%s %d\n", &name, &bytes); err != nil || n != 2 || name != manifest {
		return nil //nolint:nilerr // a crash has left an earlier note, or none
	}
	info, err := dirs.Stat(dirs.PathJoin(dir, manifest))
	if err != nil {
		return Failure(err)
	}
	if info.Size() < bytes {
		return fmt.Errorf("%w: it has %d bytes, and had %d", ErrDamaged, info.Size(), bytes)
	}
	return nil
}
