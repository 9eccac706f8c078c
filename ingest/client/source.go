package client

import (
	"bufio"
	"io"
)

// source is the bytes of a batch's records.
type source interface {
	io.Reader
	io.ByteReader
	// take returns the next n bytes, which may be kept.
	take(n int) ([]byte, error)
}

// whole is the records of a batch that is not compressed. What it returns is part of the broker's answer.
type whole struct {
	rest []byte
}

func (p *whole) Read(b []byte) (int, error) {
	n := copy(b, p.rest)
	if p.rest = p.rest[n:]; n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (p *whole) ReadByte() (byte, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c, nil
}

func (p *whole) take(n int) ([]byte, error) {
	if n > len(p.rest) {
		return nil, io.ErrUnexpectedEOF
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b, nil
}

// arenaBytes is the size of the buffers that the keys and values of a compressed batch are read into.
const arenaBytes = 64 << 10

// unpacked is the records of a compressed batch, which are decompressed as they are read.
type unpacked struct {
	*bufio.Reader
	arena []byte
}

func (u *unpacked) take(n int) ([]byte, error) {
	if n > len(u.arena) {
		u.arena = make([]byte, max(n, arenaBytes))
	}
	out := u.arena[:n:n]
	u.arena = u.arena[n:]
	_, err := io.ReadFull(u.Reader, out)
	return out, err
}

// interruptible stops a long decompression when the reading ends.
type interruptible struct {
	io.Reader
	b *batch
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.b.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(p)
}
