package dirstore

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"giantstream/sink"
)

// List implements sink.Store. It holds one directory per level in memory, not the tree. It does not
// follow symbolic links.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	return func(yield func(sink.Info, error) bool) {
		if err := sink.CheckPrefix(prefix); err != nil {
			yield(sink.Info{}, wrap("list", prefix, err))
			return
		}
		l := lister{store: s, ctx: ctx, prefix: prefix, after: after, yield: yield}
		dir, _ := sink.SplitKey(prefix)
		if dir != "" {
			dir += "/"
		}
		l.walk(dir)
	}
}

type lister struct {
	store  *Store
	ctx    context.Context
	prefix string
	after  string
	yield  func(sink.Info, error) bool
}

// walk yields the objects below dir ("" or ending in a slash) and reports whether to continue.
func (l *lister) walk(dir string) bool {
	if err := l.ctx.Err(); err != nil {
		return l.fail(err)
	}
	entries, err := readDir(l.store.path(dir))
	if err != nil {
		if errors.Is(wrap("open", dir, err), sink.ErrNotFound) {
			return true // nothing there, or deleted since
		}
		return l.fail(err)
	}
	// Sub-directories sort with their slash, so that the keys come out in byte order: "a-b" <
	// "a/b".
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		switch key := dir + e.Name(); {
		case !e.IsDir() && key <= l.after: // most of a long directory, often
		case sink.CheckKey(key) != nil: // temporary files, foreign files
		case e.IsDir():
			keys = append(keys, key+"/")
		case e.Type().IsRegular():
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if strings.HasSuffix(key, "/") {
			if l.mayHold(key) && !l.walk(key) {
				return false
			}
		} else if strings.HasPrefix(key, l.prefix) && key > l.after && !l.emit(key) {
			return false
		}
	}
	return true
}

// readDir is os.ReadDir without its order.
func readDir(path string) (entries []fs.DirEntry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.ReadDir(-1)
}

// mayHold reports whether dir can hold a key with the prefix and after it.
func (l *lister) mayHold(dir string) bool {
	if !strings.HasPrefix(dir, l.prefix) && !strings.HasPrefix(l.prefix, dir) {
		return false
	}
	return dir > l.after || strings.HasPrefix(l.after, dir)
}

func (l *lister) emit(key string) bool {
	info, err := os.Stat(l.store.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return true // deleted since the directory was read
	}
	if err != nil {
		return l.fail(err)
	}
	return l.yield(sink.Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil)
}

func (l *lister) fail(err error) bool {
	l.yield(sink.Info{}, wrap("list", l.prefix, err))
	return false
}
