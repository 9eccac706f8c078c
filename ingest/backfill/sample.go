package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/ingest/decode"
)

// Sampled is a record of an input as Run would send it.
type Sampled struct {
	Line  int64
	Value []byte // valid during the call
	// Bad is why Run would make a dead letter of the line instead of sending it, "" if it would not.
	Bad     decode.Code
	Message string
}

// SampleOptions say what to read.
type SampleOptions struct {
	Mapping decode.Mapping
	Limits  decode.Limits
	// Edges is the mapping of an input of edges, nil for another.
	Edges *decode.EdgeMapping
	// Orders or Attributes is the mapping of an input of orders, or of attributes alone; nil for another.
	Orders     *decode.OrderMapping
	Attributes *decode.AttributesMapping
	// Records and Bytes bound what is read of the input. Bytes are counted as they lie in the store, in
	// whole reads.
	Records, Bytes int64
}

// Sample describes what was read of an input.
type Sample struct {
	Name    string
	Records int64
	// More: the input has more records than were read.
	More bool
	// Notes say how the input was read, where it did not say it itself.
	Notes []string
	// Columns of a table, nil for JSON.
	Columns []string
}

// ReadSample gives the first records of an input to each, as Run would send them. It sends nothing.
func ReadSample(ctx context.Context, in *Input, o SampleOptions, each func(Sampled)) (s Sample, err error) {
	s.Name = in.Name
	c := nodeColumns(&o.Mapping.Nodes)
	switch {
	case o.Orders != nil:
		c = orderColumns(o.Orders)
	case o.Attributes != nil:
		c = attributeColumns(o.Attributes)
	case o.Edges != nil:
		c = edgeColumns(o.Edges)
	}
	c.any = true
	var read int64
	r, closer, err := in.open(ctx, o.Limits.RecordBytes, c, func(n int64) { read += n })
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	defer func() {
		about := r.describe()
		s.Notes, s.Columns = about.notes, about.fields
	}()
	for {
		rec, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return s, nil
		case err != nil:
			return s, fmt.Errorf("%s, after line %d: %w", in.Name, s.Records, err)
		case s.Records == o.Records || read > o.Bytes:
			s.More = true
			return s, ctx.Err()
		}
		s.Records++
		out := Sampled{Line: rec.line, Value: rec.value}
		switch {
		case rec.over != nil:
			out.Bad, out.Message = decode.RecordTooLarge, fmt.Sprintf("the record has %d bytes; the limit is %d",
				rec.over.size, o.Limits.RecordBytes)
		case rec.bad != "":
			out.Bad, out.Message = decode.BadCSV, rec.bad
		}
		each(out)
	}
}
