package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

// maxZstdWindow bounds what a Zstandard frame can make its reader hold. Java's encoder asks for as
// much at its highest level.
const maxZstdWindow = 128 << 20

// decompressors keeps Zstandard decoders, which are costly to make for every small batch.
type decompressors struct{ zstd sync.Pool }

// open returns what the data of a batch is, piece by piece. The codec is that of the batch's
// attributes. Memory is bounded, whatever size the data claims.
func (d *decompressors) open(codec compress.Compression, data []byte) (io.ReadCloser, error) {
	switch codec {
	case compress.Gzip, compress.Lz4:
		return codec.Codec().NewReader(bytes.NewReader(data)), nil
	case compress.Snappy:
		return io.NopCloser(&snappyReader{rest: data}), nil
	case compress.Zstd:
		z, _ := d.zstd.Get().(*zstd.Decoder)
		if z == nil {
			var err error
			z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxZstdWindow))
			if err != nil {
				return nil, err
			}
		}
		return &pooledZstd{Decoder: z, pool: &d.zstd}, z.Reset(bytes.NewReader(data))
	}
	return nil, fmt.Errorf("unknown compression %d", codec)
}

// pooledZstd goes back to its pool when it is closed.
type pooledZstd struct {
	*zstd.Decoder
	pool *sync.Pool
}

func (p *pooledZstd) Close() error {
	if p.Decoder != nil {
		err := p.Reset(nil) // lets go of the data
		p.pool.Put(p.Decoder)
		p.Decoder = nil
		return err
	}
	return nil
}

// snappyReader reads Snappy blocks: one without a frame, as librdkafka and Sarama write, or those of
// Java's stream, each with its length before it.
type snappyReader struct {
	rest    []byte
	begun   bool
	framed  bool
	decoded []byte // not yet read
	buf     []byte
}

var (
	xerialMagic = []byte("\x82SNAPPY\x00")
	errSnappy   = errors.New("damaged Snappy data")
)

const (
	// xerialHeader: the magic and two versions.
	xerialHeader = 16
	// maxSnappyRatio is more than the format can express: a copy of 64 bytes takes two or three.
	maxSnappyRatio = 64
)

func (s *snappyReader) Read(p []byte) (int, error) {
	for len(s.decoded) == 0 {
		if err := s.block(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.decoded)
	s.decoded = s.decoded[n:]
	return n, nil
}

func (s *snappyReader) block() error {
	if !s.begun {
		s.begun = true
		if s.framed = bytes.HasPrefix(s.rest, xerialMagic) && len(s.rest) >= xerialHeader; s.framed {
			s.rest = s.rest[xerialHeader:]
		}
	}
	if len(s.rest) == 0 {
		return io.EOF
	}
	block := s.rest
	if s.framed {
		if len(s.rest) < 4 {
			return errSnappy
		}
		n := binary.BigEndian.Uint32(s.rest)
		if s.rest = s.rest[4:]; uint64(n) > uint64(len(s.rest)) {
			return errSnappy
		}
		block = s.rest[:n]
	}
	s.rest = s.rest[len(block):]
	size, err := snappy.DecodedLen(block)
	if err != nil || size > maxSnappyRatio*len(block) {
		return errSnappy
	}
	if s.buf, err = snappy.Decode(s.buf[:cap(s.buf)], block); err != nil {
		return fmt.Errorf("%w: %w", errSnappy, err)
	}
	s.decoded = s.buf
	return nil
}
