package backfill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"giantstream/ingest/deadletter"
	"giantstream/sink"

	"github.com/parquet-go/parquet-go"
)

// parquetReader turns the rows of a Parquet file of any schema into JSON
// objects, a field per column; timestamps are integers in the column's unit.
type parquetReader struct {
	rows  *parquet.GenericReader[any]
	limit int
	row   int64
	batch []any
	ready []any
}

func newParquetReader(f sink.Object, limit int) (p *parquetReader, err error) {
	defer recovered(&err)
	file, err := parquet.OpenFile(f, f.Size())
	if err != nil {
		return nil, err
	}
	return &parquetReader{rows: parquet.NewGenericReader[any](file, file.Schema()), limit: limit, batch: make([]any, 64)}, nil
}

func (p *parquetReader) next() (rec record, err error) {
	defer recovered(&err)
	if len(p.ready) == 0 {
		clear(p.batch)
		n, err := p.rows.Read(p.batch)
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return record{}, err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return record{}, err
		}
		p.ready = p.batch[:n]
	}
	p.row++
	rec = record{line: p.row, value: appendValue(nil, p.ready[0])}
	p.ready = p.ready[1:]
	if len(rec.value) > p.limit {
		rec = cut(rec)
	}
	return rec, nil
}

// recovered turns a panic of the Parquet library, which trusts its input in
// places, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", r)
	}
}

// cut keeps the beginning of a record that is over the limit.
func cut(rec record) record {
	sum := sha256.Sum256(rec.value)
	rec.over = &oversize{size: int64(len(rec.value)), sha256: hex.EncodeToString(sum[:])}
	rec.value = rec.value[:min(len(rec.value), deadletter.CutBytes)]
	return rec
}
