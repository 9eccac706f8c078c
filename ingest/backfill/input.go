package backfill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"giantstream/sink"
)

// ErrNoInput: a pattern matches nothing.
var ErrNoInput = errors.New("no file matches")

// Format of an input.
type Format string

// The formats. Lines and CSV may be compressed (.gz, .zst).
const (
	JSONLines Format = "jsonl"
	CSV       Format = "csv"
	Parquet   Format = "parquet"
)

// Input is a file or object to send.
type Input struct {
	// Name identifies the input to people and in checkpoints.
	Name     string
	Size     int64
	Modified time.Time
	// Format, "" for what the name's extension says.
	Format Format
	Open   func(context.Context) (sink.Object, error)
}

// Files returns the local files that match the patterns (filepath.Match), in
// order of their names, each once.
func Files(patterns ...string) ([]Input, error) {
	var names []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("pattern %q: %w", p, ErrNoInput)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	var in []Input
	for _, name := range slices.Compact(names) {
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if st.IsDir() {
			continue
		}
		in = append(in, Input{
			Name: name, Size: st.Size(), Modified: st.ModTime(),
			Open: func(context.Context) (sink.Object, error) { return openFile(name) },
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
	f, err := os.Open(name)
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

// Objects returns the objects of a store whose keys match the patterns
// (path.Match), in order of their keys, each once.
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

// format returns the format and, for compressed files, the extension that
// says how (".gz", ".zst" or "").
func (in *Input) format() (Format, string, error) {
	name, compression := in.Name, ""
	if ext := path.Ext(name); ext == ".gz" || ext == ".zst" {
		name, compression = strings.TrimSuffix(name, ext), ext
	}
	if in.Format != "" {
		return in.Format, compression, nil
	}
	switch path.Ext(name) {
	case ".jsonl", ".ndjson", ".json":
		return JSONLines, compression, nil
	case ".csv":
		return CSV, compression, nil
	case ".parquet":
		return Parquet, compression, nil
	}
	return "", "", fmt.Errorf("%s: cannot tell the format from the name; use .jsonl, .csv (perhaps .gz or .zst) or .parquet, or say which it is", in.Name)
}
