package parquetio

import (
	"bytes"
	"io"
	"sync"

	"giantstream/internal/tempfile"
)

// draftBytes is how much of a file is kept in memory until it is stored. A window under load makes an
// object of 1 or 2 MiB.
const draftBytes = 4 << 20

// draft is a file that is not stored yet. It is in memory, and from draftBytes on in a temporary file.
// Close must be called once.
type draft struct {
	memory *bytes.Buffer // the end of the file, and its beginning while there is no temporary file
	file   *tempfile.File
	size   int64
}

var draftMemory = sync.Pool{New: func() any { return &bytes.Buffer{} }}

func newDraft() *draft { return &draft{memory: draftMemory.Get().(*bytes.Buffer)} }

// Write appends to the file.
func (d *draft) Write(p []byte) (n int, err error) {
	if d.memory.Len()+len(p) > draftBytes {
		if err := d.spill(); err != nil {
			return 0, err
		}
	}
	if len(p) > draftBytes {
		n, err = d.file.Write(p)
	} else {
		n, err = d.memory.Write(p)
	}
	d.size += int64(n)
	return n, err
}

// spill moves what is in memory to the temporary file.
func (d *draft) spill() (err error) {
	if d.file == nil {
		if d.file, err = tempfile.Create("giantstream-*.parquet"); err != nil {
			return err
		}
	}
	_, err = d.memory.WriteTo(d.file)
	return err
}

// finish returns the file, valid until Close.
func (d *draft) finish() (io.ReaderAt, error) {
	if d.file == nil {
		return bytes.NewReader(d.memory.Bytes()), nil
	}
	err := d.spill()
	return io.NewSectionReader(d.file, 0, d.size), err
}

// recycle keeps the memory for other files. A store that has failed may still read from it, so this is
// only for a file that was stored.
func (d *draft) recycle() {
	d.memory.Reset()
	draftMemory.Put(d.memory)
	d.memory = nil
}

// Close removes the file.
func (d *draft) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
