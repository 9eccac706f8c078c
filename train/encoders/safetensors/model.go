package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

const (
	modelName = "model.safetensors"
	indexName = "model.safetensors.index.json"
	// maxShards bounds how many files a model may be spread over.
	maxShards = 1024
)

// Model is the tensors of a model directory. It is safe for concurrent use
// where the files are.
type Model struct {
	files   []fs.File
	tensors map[string]*Archive
}

// OpenModel opens the tensors of a directory: model.safetensors, or where that
// is missing the files that model.safetensors.index.json names. The
// directory's files must be io.ReaderAt, as those of os.DirFS are.
func OpenModel(dir fs.FS) (*Model, error) {
	m := &Model{tensors: map[string]*Archive{}}
	a, err := m.open(dir, modelName)
	if err == nil {
		for _, name := range a.Names() {
			m.tensors[name] = a
		}
		return m, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = m.openShards(dir)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// openShards opens the files that the index names. It checks that each tensor is in the file that
// the index gives, and in no other.
func (m *Model) openShards(dir fs.FS) error {
	where, err := readIndex(dir)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, file := range where {
		names[file] = true
	}
	if len(names) == 0 || len(names) > maxShards {
		return fmt.Errorf("%w: %s names %d files, 1 to %d can be read", ErrInvalid, indexName, len(names), maxShards)
	}
	for file := range names {
		if !fs.ValidPath(file) || strings.Contains(file, "/") || strings.Contains(file, `\`) {
			return fmt.Errorf("%w: %s names the file %q, which is not in the same folder", ErrInvalid, indexName, file)
		}
		a, err := m.open(dir, file)
		if err != nil {
			return fmt.Errorf("%s: %w", indexName, err)
		}
		for _, tensor := range a.Names() {
			if where[tensor] != file {
				return fmt.Errorf("%w: tensor %q is in %s, %s says %q",
					ErrInvalid, tensor, file, indexName, where[tensor])
			}
			m.tensors[tensor] = a
		}
	}
	if len(m.tensors) != len(where) {
		return fmt.Errorf("%w: %s names %d tensors, its files hold %d of them", ErrInvalid, indexName, len(where),
			len(m.tensors))
	}
	return nil
}

// readIndex returns the file of each tensor.
func readIndex(dir fs.FS) (map[string]string, error) {
	f, err := dir.Open(indexName)
	if err != nil {
		return nil, fmt.Errorf("safetensors: no %s and: %w", modelName, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	if err != nil {
		return nil, fmt.Errorf("safetensors: read %s: %w", indexName, err)
	}
	if len(data) > maxHeader {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrInvalid, indexName, maxHeader)
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, indexName, err)
	}
	return index.Files, nil
}

// open opens a file and keeps it open until Close.
func (m *Model) open(dir fs.FS, name string) (*Archive, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	m.files = append(m.files, f)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("safetensors: %s: its file system gives no random access", name)
	}
	a, err := Open(r, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// Close closes the files.
func (m *Model) Close() error {
	var all []error
	for _, f := range m.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}

// Names returns the tensors' names in ascending order.
func (m *Model) Names() []string {
	names := make([]string, 0, len(m.tensors))
	for n := range m.tensors {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Shape returns a tensor's shape, or false if there is no such tensor.
func (m *Model) Shape(name string) ([]int, bool) {
	if a := m.tensors[name]; a != nil {
		return a.Shape(name)
	}
	return nil, false
}

// Float32 reads a tensor as Archive.Float32 does.
func (m *Model) Float32(name string, shape ...int) ([]float32, error) {
	a := m.tensors[name]
	if a == nil {
		a = &Archive{} // has no tensors: the same error as for one file
	}
	return a.Float32(name, shape...)
}
