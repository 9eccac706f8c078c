package replay

import (
	"bufio"
	"encoding/gob"
	"io"

	"giantstream/internal/tempfile"
	"giantstream/stream/mutation"
)

// letters are mutations in a temporary file, which are first all written and then read.
type letters struct {
	file *tempfile.File
	out  *bufio.Writer
	enc  *gob.Encoder
	n    int64
	read int64 // how many were read, the one that is being handed out included
}

func newLetters() (*letters, error) {
	f, err := tempfile.Create("giantstream-replay-*")
	if err != nil {
		return nil, err
	}
	l := &letters{file: f, out: bufio.NewWriter(f)}
	l.enc = gob.NewEncoder(l.out)
	return l, nil
}

func (l *letters) add(m *mutation.Mutation) error {
	l.n++
	return l.enc.Encode(m)
}

// forEach calls f for every mutation that was added, in order.
func (l *letters) forEach(f func(mutation.Mutation) error) error {
	if err := l.out.Flush(); err != nil {
		return err
	}
	if _, err := l.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	dec := gob.NewDecoder(bufio.NewReader(l.file))
	for l.read < l.n {
		var m mutation.Mutation
		if err := dec.Decode(&m); err != nil {
			return err
		}
		l.read++
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the file.
func (l *letters) Close() error { return l.file.Close() }
