package forget

import (
	"context"
	"fmt"
	"iter"

	"giantstream/internal/ambient"
)

// Record is a record of a topic. Headers are one after the other: name, value, name, value.
type Record struct {
	Offset     int64
	Key, Value []byte
	Headers    [][]byte
}

// Topics are the topics of a pipeline.
type Topics interface {
	// Partitions returns how many partitions a topic has; 0 for a topic that does not exist.
	Partitions(ctx context.Context, topic string) (int, error)
	// Records yields the records that a partition has now.
	Records(ctx context.Context, topic string, partition int) iter.Seq2[Record, error]
}

// Topic scans all records of a topic. kind is what the report calls it.
func (s *Scanner) Topic(ctx context.Context, in Topics, topic, kind string, progress ambient.Progress) error {
	progress = ambient.OrDiscard(progress)
	progress.Stage("scan topic "+topic, 0)
	partitions, err := in.Partitions(ctx, topic)
	if err != nil {
		return fmt.Errorf("scan topic %s: %w", topic, err)
	}
	for p := range partitions {
		s.begin(fmt.Sprintf("%s/%d", topic, p))
		for r, err := range in.Records(ctx, topic, p) {
			if err != nil {
				return fmt.Errorf("scan topic %s: %w", topic, err)
			}
			s.report.Records++
			progress.Add(1)
			if s.record(r) {
				if s.at.First < 0 {
					s.at.First = r.Offset
				}
				s.at.Last = r.Offset
			}
		}
		s.end(kind)
	}
	return nil
}

// record searches a record, and reports whether it has anything.
func (s *Scanner) record(r Record) bool {
	before := s.hits
	s.found(r.Key, apart, "keys")
	// A value that is no JSON has an id at its end, or after a byte with its length.
	if !s.json(r.Value, "values") {
		s.found(r.Value, tail, "values")
	}
	for _, h := range r.Headers {
		s.found(h, apart, "headers")
	}
	return s.hits > before
}
