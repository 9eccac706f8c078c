package parquetio

import (
	"sync"

	"github.com/klauspost/compress/s2"
	kzstd "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Compression of a file's pages. Every reader of Parquet knows them all.
type Compression string

// The compressions; "" is Zstd.
const (
	Zstd   Compression = "zstd"   // the smallest files
	Snappy Compression = "snappy" // half again as large, for less than half of the processor time
	None   Compression = "none"
)

// zstdCodec is for all files of the process.
var zstdCodec = &sharedZstd{}

// sharedZstd has one encoder for each core, however many files are written at once. The library's codec
// has one for each, and each may take 8 MiB: its window is that of streams, where a page is all that an
// encoder sees.
type sharedZstd struct{ zstd.Codec }

// zstdWindow is the usual size of a page. Of a larger one, which has long values, less is searched.
const zstdWindow = 256 << 10

var zstdEncoder = sync.OnceValues(func() (*kzstd.Encoder, error) {
	return kzstd.NewWriter(nil, kzstd.WithEncoderLevel(kzstd.SpeedFastest), kzstd.WithWindowSize(zstdWindow),
		kzstd.WithLowerEncoderMem(true), kzstd.WithZeroFrames(true), kzstd.WithEncoderCRC(false))
})

func (*sharedZstd) Encode(dst, src []byte) ([]byte, error) {
	e, err := zstdEncoder()
	if err != nil {
		return nil, err
	}
	return e.EncodeAll(src, dst[:0]), nil
}

func (c Compression) codec() compress.Codec {
	switch c {
	case Snappy:
		return &fastSnappy{}
	case None:
		return &parquet.Uncompressed
	}
	return zstdCodec
}

// fastSnappy is Snappy at its usual pace. The library's codec searches longer for matches and takes
// twice the time.
type fastSnappy struct{ snappy.Codec }

func (*fastSnappy) Encode(dst, src []byte) ([]byte, error) {
	return s2.EncodeSnappy(dst[:cap(dst)], src), nil
}
