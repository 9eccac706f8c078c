package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReadTables reads all tables of a directory block by block, and compares each block with its checksum.
func ReadTables(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			if err := readTable(disk, disk.PathJoin(dir, name)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func readTable(disk vfs.FS, path string) (err error) {
	file, err := disk.Open(path)
	if err != nil {
		return Failure(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(Failure(err), file.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return Failure(errors.Join(err, readable.Close()))
	}
	return Failure(errors.Join(r.ValidateBlockChecksums(), r.Close()))
}
