package parquetio

import (
	"github.com/klauspost/compress/s2"
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

// zstdCodec keeps encoders, with their tables, from file to file.
var zstdCodec = &zstd.Codec{Level: zstd.SpeedFastest}

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
