package ogb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// part is which part of a node's text a text is.
type part byte

const (
	title part = iota
	body
	parts
)

// bucket is how many nodes' texts lie in one file of a spill, and are in memory at once.
const bucket = 1 << 18

// spill sorts texts by node: add all, then sealed, then ask for the texts in order.
type spill struct {
	dir     string
	files   []*os.File
	out     []*bufio.Writer
	current int // the bucket that is loaded, -1 before the first
	texts   [][parts]string
	header  []byte
}

func newSpill(below string, nodes int64) (*spill, error) {
	dir, err := os.MkdirTemp(below, "texts-*")
	if err != nil {
		return nil, err
	}
	s := &spill{dir: dir, current: -1}
	for k := range (nodes + bucket - 1) / bucket {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(k)))
		if err != nil {
			return nil, errors.Join(err, s.remove())
		}
		s.files = append(s.files, f)
		s.out = append(s.out, bufio.NewWriterSize(f, 32<<10))
	}
	return s, nil
}

// add keeps a part of a node's text. Of two for the same part the later one counts.
func (s *spill) add(node int64, p part, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	s.header = binary.AppendUvarint(s.header[:0], uint64(node%bucket))
	s.header = append(s.header, byte(p))
	s.header = binary.AppendUvarint(s.header, uint64(len(text)))
	w := s.out[node/bucket]
	if _, err := w.Write(s.header); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

// sealed ends the adding.
func (s *spill) sealed() error {
	var errs []error
	for _, w := range s.out {
		errs = append(errs, w.Flush())
	}
	s.out = nil
	return errors.Join(errs...)
}

// text returns a node's text: its parts, a line each. Nodes are asked for in ascending order.
func (s *spill) text(node int64) (string, error) {
	if k := int(node / bucket); k != s.current {
		if err := s.load(k); err != nil {
			return "", err
		}
	}
	t := s.texts[node%bucket]
	if t[title] == "" || t[body] == "" {
		return t[title] + t[body], nil
	}
	return t[title] + "\n" + t[body], nil
}

func (s *spill) load(k int) error {
	s.current, s.texts = k, make([][parts]string, bucket)
	if _, err := s.files[k].Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(s.files[k], 1<<20)
	for {
		node, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p, err := in.ReadByte()
		if err != nil {
			return err
		}
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return err
		}
		text := make([]byte, n)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		s.texts[node][p] = string(text)
	}
}

func (s *spill) remove() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// file is an output, which gets its name when it is whole. A name that ends in .zst is compressed.
type file struct {
	io.Writer
	path string
	file *os.File
	buf  *bufio.Writer
	zstd *zstd.Encoder
}

func create(path string) (*file, error) {
	f, err := os.Create(path + ".part")
	if err != nil {
		return nil, err
	}
	out := &file{path: path, file: f, buf: bufio.NewWriterSize(f, 1<<20)}
	out.Writer = out.buf
	if filepath.Ext(path) == ".zst" {
		if out.zstd, err = zstd.NewWriter(out.buf, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		out.Writer = out.zstd
	}
	return out, nil
}

// end closes the file, and gives it its name unless err says that it is not whole.
func (f *file) end(err error) error {
	if f.zstd != nil {
		err = errors.Join(err, f.zstd.Close())
	}
	err = errors.Join(err, f.buf.Flush(), f.file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.path+".part"))
	}
	return os.Rename(f.path+".part", f.path)
}
