package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	manifestlog "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

const (
	// LockName is the engine's name for the file by which it locks a directory.
	LockName = "LOCK"
	// DirMode: a state holds the texts of the nodes.
	DirMode = 0o700
)

// Lock makes the directory of a state if need be, and locks it. The lock is the engine's own,
// taken by the state, because the state moves damaged directories away after the engine is closed.
func Lock(dirs vfs.FS, dir string) (io.Closer, error) {
	if err := dirs.MkdirAll(dir, DirMode); err != nil {
		return nil, Failure(err)
	}
	lock, err := dirs.Lock(filepath.Join(dir, LockName))
	if err == nil {
		return lock, nil
	}
	// Errors about the file name its path; a lock that is held is a bare error.
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return nil, Failure(err)
	}
	return nil, fmt.Errorf("%w: another process or shard has it open; stop that one, or choose another state_dir: %w",
		ErrInUse, err)
}

// CheckManifest looks at the manifest of an engine that is about to be opened: the list of its tables. Without the
// marker that names it, the engine would remove all data and begin an empty database. A manifest alone is what a crash
// leaves of an opening.
//
// The engine takes a record that it cannot read for the end of the manifest, and goes back to an older list of tables
// without an error. Rows that were built on one had labels twice. A torn end, which a loss of power may leave, is not
// told from damage: the state is built again.
func CheckManifest(dirs vfs.FS, dir string) error {
	names, err := dirs.List(dir)
	if err != nil {
		return Failure(err)
	}
	name, err := atomicfs.ReadMarker(dirs, dir, "manifest")
	if err != nil {
		return Failure(err)
	}
	if name != "" {
		err := checkLength(dirs, dir, name)
		if err == nil {
			err = readManifest(dirs, dirs.PathJoin(dir, name))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if at := slices.IndexFunc(names, IsData); at >= 0 {
		return fmt.Errorf("%w: there is %s, and no marker of the current manifest", ErrDamaged, names[at])
	}
	return nil
}

// readManifest reads all records of a manifest.
func readManifest(dirs vfs.FS, path string) (err error) {
	file, err := dirs.Open(path)
	if err != nil {
		return Failure(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	records := manifestlog.NewReader(file, 0)
	for {
		r, err := records.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return Failure(err)
		}
	}
}

// CheckSpace returns ErrDiskFull if less than `bytes` bytes are free on the disk of a directory.
func CheckSpace(disk vfs.FS, dir string, bytes uint64) error {
	usage, err := disk.GetDiskUsage(dir)
	if err != nil || usage.AvailBytes >= bytes {
		return nil //nolint:nilerr // not every file system tells; then a write fails
	}
	return fmt.Errorf("%w: %s has %d MiB free, and a shard needs %d MiB to go on; "+
		"free space, or choose another state_dir",
		ErrDiskFull, dir, usage.AvailBytes>>20, bytes>>20)
}

// asideSuffix and a number name the directories of damaged states.
const asideSuffix = ".damaged-"

// SetAside renames the directory of a damaged state, so that the next opening begins with none. It
// keeps the newest one for a person who wants to know what happened.
func SetAside(dirs vfs.FS, dir string) (to string, err error) {
	if err := RemoveAside(dirs, dir); err != nil {
		return "", fmt.Errorf("remove the state that was set aside earlier: %w", err)
	}
	numbers, err := asideNumbers(dirs, dir)
	if err != nil {
		return "", err
	}
	next := int64(1)
	if len(numbers) > 0 {
		next = slices.Max(numbers) + 1
	}
	to = asideName(dir, next)
	if err := dirs.Rename(dir, to); err != nil {
		return "", fmt.Errorf("set a damaged state aside: %w", err)
	}
	return to, SyncDir(dirs, dirs.PathDir(dir))
}

func asideName(dir string, number int64) string {
	return dir + asideSuffix + strconv.FormatInt(number, 10)
}

func asideNumbers(dirs vfs.FS, dir string) (numbers []int64, err error) {
	names, err := dirs.List(dirs.PathDir(dir))
	if err != nil {
		return nil, fmt.Errorf("look for states that were set aside: %w", err)
	}
	for _, name := range names {
		number, ok := strings.CutPrefix(name, dirs.PathBase(dir)+asideSuffix)
		if n, err := strconv.ParseInt(number, 10, 64); ok && err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// RemoveAside removes the directories that SetAside has made, except those with files of others.
func RemoveAside(dirs vfs.FS, dir string) error {
	numbers, err := asideNumbers(dirs, dir)
	for _, n := range numbers {
		name := asideName(dir, n)
		if onlyEngineFiles(dirs, name) {
			err = errors.Join(err, dirs.RemoveAll(name))
		}
	}
	return err
}

// engineFileName matches the names that the engine gives to its files.
var engineFileName = regexp.MustCompile(`^(LOCK|CURRENT|(MANIFEST|OPTIONS|REMOTE-OBJ-CATALOG)-\d+|` +
	`\d+\.(sst|blob|log)|marker\..*|temporary\..*|.*\.dbtmp)$`)

func onlyEngineFiles(dirs vfs.FS, dir string) bool {
	names, err := dirs.List(dir)
	foreign := func(name string) bool { return !engineFileName.MatchString(name) }
	return err == nil && !slices.ContainsFunc(names, foreign)
}

// SyncDir makes the names in a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
