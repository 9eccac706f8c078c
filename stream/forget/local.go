package forget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"giantstream/internal/ambient"
	"giantstream/sink"
)

// Folder scans every file of a folder on this machine, as what its bytes say that it is. kind is what the report calls
// it. A folder that does not exist and a file that is removed meanwhile have nothing left.
func (s *Scanner) Folder(ctx context.Context, dir, kind string, progress ambient.Progress) error {
	progress = ambient.OrDiscard(progress)
	progress.Stage("scan "+dir, 0)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && d.Type().IsRegular() {
			err = s.file(ctx, path, kind)
			progress.Add(1)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("scan %s: %w", path, err)
		}
		return nil
	})
}

func (s *Scanner) file(ctx context.Context, path, kind string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	o := localFile{f, info.Size()}
	s.begin(path)
	_, err = s.content(ctx, path, o)
	if err == nil && kind == BrokerLog {
		err = s.frames(o)
	}
	s.end(kind)
	return errors.Join(err, f.Close())
}

// BrokerLog is the kind of the folder of the embedded broker. In its files batches of records lie one after the other,
// compressed or not.
const BrokerLog = "log of the embedded broker"

// frames searches what the Zstandard frames hold that lie anywhere in an object.
func (s *Scanner) frames(o sink.Object) error {
	const piece = 1 << 20
	buf := make([]byte, piece)
	for off := int64(0); off < o.Size(); {
		n, err := o.ReadAt(buf, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		at := bytes.Index(buf[:n], []byte(zstdMagic))
		if at < 0 {
			off += int64(max(1, n-len(zstdMagic)+1))
			continue
		}
		off += int64(at)
		// Bytes may look like a frame, and one may be cut off: what was read of it has been searched.
		_ = s.compressed(io.NewSectionReader(o, off, o.Size()-off), []byte(zstdMagic))
		off++
	}
	return nil
}

// localFile implements sink.Object.
type localFile struct {
	*os.File
	size int64
}

// Size implements sink.Object.
func (f localFile) Size() int64 { return f.size }
