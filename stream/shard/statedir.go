package shard

import (
	"context"
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
	// lockName is the engine's name for the file by which it locks a directory.
	lockName = "LOCK"
	// stateDirMode: a state holds the texts of the nodes.
	stateDirMode = 0o700
)

// lockState makes the directory of a state if need be, and locks it. The lock is the engine's own,
// taken by the state, because the state moves damaged directories away after the engine is closed.
func lockState(dirs vfs.FS, dir string) (io.Closer, error) {
	if err := dirs.MkdirAll(dir, stateDirMode); err != nil {
		return nil, engineFailure(err)
	}
	lock, err := dirs.Lock(filepath.Join(dir, lockName))
	if err == nil {
		return lock, nil
	}
	// Errors about the file name its path; a lock that is held is a bare error.
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return nil, engineFailure(err)
	}
	return nil, fmt.Errorf("%w: another process or shard has it open; stop that one, or choose another state_dir: %w",
		ErrStateInUse, err)
}

// checkManifest looks at the manifest of an engine that is about to be opened: the list of its tables. Without the
// marker that names it, the engine would remove all data and begin an empty database. A manifest alone is what a crash
// leaves of an opening.
//
// The engine takes a record that it cannot read for the end of the manifest, and goes back to an older list of tables
// without an error. Rows that were built on one had labels twice. A torn end, which a loss of power may leave, is not
// told from damage: the state is built again.
func checkManifest(dirs vfs.FS, dir string) error {
	names, err := dirs.List(dir)
	if err != nil {
		return engineFailure(err)
	}
	name, err := atomicfs.ReadMarker(dirs, dir, "manifest")
	if err != nil {
		return engineFailure(err)
	}
	if name != "" {
		if err := readManifest(dirs, dirs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if at := slices.IndexFunc(names, isData); at >= 0 {
		return fmt.Errorf("%w: there is %s, and no marker of the current manifest", ErrStateDamaged, names[at])
	}
	return nil
}

// readManifest reads all records of a manifest.
func readManifest(dirs vfs.FS, path string) (err error) {
	file, err := dirs.Open(path)
	if err != nil {
		return engineFailure(err)
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
			return engineFailure(err)
		}
	}
}

// stateReserveBytes is the free space without which a shard does not go on. It takes what all shards
// of a process may have in memory at once: the open windows, and a few memtables on their way to the
// disk. The engine bounds its compactions by the free space itself.
const stateReserveBytes = windowMemoryBytes + memTablesBytes

// checkSpace returns ErrDiskFull if less than so many bytes are free. A copy of the state that was
// set aside goes first.
func (s *state) checkSpace(bytes uint64) error {
	err := checkSpace(s.fs.FS, s.dir, bytes)
	if err == nil || removeAside(s.fs.FS, s.dir) != nil {
		return err
	}
	return checkSpace(s.fs.FS, s.dir, bytes)
}

func checkSpace(disk vfs.FS, dir string, bytes uint64) error {
	usage, err := disk.GetDiskUsage(dir)
	if err != nil || usage.AvailBytes >= bytes {
		return nil //nolint:nilerr // not every file system tells; then a write fails
	}
	return fmt.Errorf("%w: %s has %d MiB free, and a shard needs %d MiB to go on; "+
		"free space, or choose another state_dir",
		ErrDiskFull, dir, usage.AvailBytes>>20, bytes>>20)
}

// openOwn opens the state of the shard. Instead of a damaged one it opens a new one.
func (o *Options) openOwn(ctx context.Context, want meta) (*state, error) {
	st, err := o.openState(ctx, o.Dir, want)
	if errors.Is(err, ErrStateDamaged) {
		if err := o.setAside(err); err != nil {
			return nil, err
		}
		st, err = o.openState(ctx, o.Dir, want)
	}
	return st, err
}

// closeState closes the state and, if it is damaged, sets it aside.
func (s *Shard) closeState() error {
	if err := s.state.close(); err != nil {
		return fmt.Errorf("close the state of shard %d: %w", s.opts.Shard, err)
	}
	if reason := s.state.guard.failure(); errors.Is(reason, ErrStateDamaged) {
		return s.opts.setAside(reason)
	}
	return nil
}

func (o *Options) setAside(reason error) error {
	to, err := setAside(o.fs, o.Dir)
	if err != nil {
		return fmt.Errorf("state of shard %d in %s: %w (%w); remove the directory", o.Shard, o.Dir, err, reason)
	}
	o.Log.Warn("local state is damaged and was set aside; "+
		"it is built again from the newest checkpoint or from the topics, and nothing is lost",
		"moved_to", to, "reason", reason)
	o.Listener.SetAside(to, reason)
	return nil
}

// asideSuffix and a number name the directories of damaged states.
const asideSuffix = ".damaged-"

// setAside renames the directory of a damaged state, so that the next opening begins with none. It
// keeps the newest one for whoever wants to know what happened.
func setAside(dirs vfs.FS, dir string) (to string, err error) {
	if err := removeAside(dirs, dir); err != nil {
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
	return to, syncDir(dirs, dirs.PathDir(dir))
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

// removeAside removes the directories that setAside has made, except those with files of others.
func removeAside(dirs vfs.FS, dir string) error {
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
