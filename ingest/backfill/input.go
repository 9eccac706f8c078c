package backfill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"giantstream/internal/regular"
	"giantstream/sink"
)

// ErrNoInput: a pattern matches nothing.
var ErrNoInput = errors.New("no file matches")

// ErrDirectory: a pattern matches a directory. What lies in it may be files of any kind, and columns
// may be in the names of further directories, so the pattern has to say what is meant.
var ErrDirectory = errors.New("is a directory, and directories are not read")

// errDirectory says how to name the files of a directory.
func errDirectory(pattern, name string) error {
	return fmt.Errorf("pattern %q: %s %w; name the files in it, like %s/*.parquet, or leave it out, like *.jsonl in "+
		"place of *", pattern, name, ErrDirectory, strings.TrimSuffix(name, "/"))
}

// format of an input.
type format string

// The formats. Lines and CSV may be compressed (.gz, .zst).
const (
	jsonLines   format = "jsonl"
	csvRows     format = "csv"
	parquetRows format = "parquet"
)

// Input is a file or object to send.
type Input struct {
	// Name identifies the input to people and in checkpoints.
	Name     string
	Size     int64
	Modified time.Time
	Open     func(context.Context) (sink.Object, error)
	// Hash returns the SHA-256 of the content in hex. It is nil for objects of a store, which have
	// another modification time whenever their content differs; a file can be given any time.
	Hash func(context.Context) (string, error)
	// Read says how the content is read.
	Read ReadOptions
}

// ReadOptions say how to read what a file does not say by itself.
type ReadOptions struct {
	// ListSeparator splits the cells of CSV columns that are mapped as lists, [*], or to the far ends of
	// edges; "" splits none. Cells that are JSON lists need none.
	ListSeparator string `json:"list_separator,omitempty"`
	// SkipWithoutText leaves out node records without any text that delete nothing.
	SkipWithoutText bool `json:"skip_without_text,omitempty"`
}

// key tells options apart in checkpoints, "" for none.
func (o ReadOptions) key() string {
	if o == (ReadOptions{}) {
		return ""
	}
	return fmt.Sprintf("%q %t", o.ListSeparator, o.SkipWithoutText)
}

// Files returns the local files that match the patterns (filepath.Match), in order of their names,
// each once. A directory among them is ErrDirectory.
func Files(patterns ...string) ([]Input, error) {
	var names []string
	matching := map[string]string{} // pattern by name
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("pattern %q: %w", p, ErrNoInput)
		}
		names = append(names, found...)
		for _, name := range found {
			matching[name] = p
		}
	}
	slices.Sort(names)
	var in []Input
	for _, name := range slices.Compact(names) {
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if st.IsDir() {
			return nil, errDirectory(matching[name], name)
		}
		if err := regular.Check(name, st); err != nil {
			return nil, err
		}
		in = append(in, Input{
			Name: name, Size: st.Size(), Modified: st.ModTime(),
			Open: func(context.Context) (sink.Object, error) { return openFile(name) },
			Hash: func(ctx context.Context) (string, error) { return hashFile(ctx, name) },
		})
	}
	return in, nil
}

// file is a local file as an object.
type file struct {
	*os.File
	size int64
}

func openFile(name string) (sink.Object, error) {
	f, err := regular.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file{f, st.Size()}, nil
}

func (f file) Size() int64 { return f.size }

// hashFile reads a file whole, at the speed of SHA-256, a small part of what sending it takes.
func hashFile(ctx context.Context, name string) (string, error) {
	f, err := regular.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(sum.Sum(nil)), nil
		case err == nil:
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
	}
}

// Objects returns the objects of a store whose keys match the patterns (path.Match), in order of
// their keys, each once. As with Files, a pattern that matches what objects lie under is ErrDirectory.
func Objects(ctx context.Context, store sink.Store, patterns ...string) ([]Input, error) {
	byKey := map[string]Input{}
	for _, p := range patterns {
		n := 0
		prefix := p
		if i := strings.IndexAny(p, `*?[\`); i >= 0 {
			prefix = p[:i]
		}
		for info, err := range store.List(ctx, prefix, "") {
			if err != nil {
				return nil, err
			}
			ok, err := path.Match(p, info.Key)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", p, err)
			}
			if !ok {
				if directory := matchingPrefix(p, info.Key); directory != "" {
					return nil, errDirectory(p, store.URL()+"/"+directory)
				}
				continue
			}
			n++
			byKey[info.Key] = Input{
				Name: store.URL() + "/" + info.Key, Size: info.Size, Modified: info.Modified,
				Open: func(ctx context.Context) (sink.Object, error) { return store.Open(ctx, info.Key) },
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("pattern %q in %s: %w", p, store.URL(), ErrNoInput)
		}
	}
	in := make([]Input, 0, len(byKey))
	for _, i := range byKey {
		in = append(in, i)
	}
	slices.SortFunc(in, func(a, b Input) int { return strings.Compare(a.Name, b.Name) })
	return in, nil
}

// matchingPrefix returns the directory of a key that matches a pattern, "" for none.
func matchingPrefix(pattern, key string) string {
	prefix := key
	for range strings.Count(key, "/") - strings.Count(pattern, "/") {
		prefix = path.Dir(prefix)
	}
	if ok, err := path.Match(pattern, prefix); err != nil || !ok || prefix == key {
		return ""
	}
	return prefix
}

// format returns the format and, for compressed files, the extension that says how (".gz", ".zst"
// or "").
func (in *Input) format() (format, string, error) {
	name, compression := in.Name, ""
	if ext := path.Ext(name); ext == ".gz" || ext == ".zst" {
		name, compression = strings.TrimSuffix(name, ext), ext
	}
	switch path.Ext(name) {
	case ".jsonl", ".ndjson", ".json":
		return jsonLines, compression, nil
	case ".csv", ".tsv":
		return csvRows, compression, nil
	case ".parquet":
		return parquetRows, compression, nil
	}
	return "", "", fmt.Errorf("%s: cannot tell the format from the name; use .jsonl, .csv or .tsv (perhaps with "+
		".gz or .zst) or .parquet", in.Name)
}
