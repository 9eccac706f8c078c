package deadletter

import (
	"context"
	"iter"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
)

// Filter selects letters; zero fields select all.
type Filter struct {
	// Code of the letter.
	Code decode.Code
	// Topic the record came from.
	Topic string
	// Since: letters written at or after this time.
	Since time.Time
}

func (f Filter) match(l *Letter) bool {
	return (f.Code == "" || f.Code == l.Code) &&
		(f.Topic == "" || f.Topic == l.Topic) &&
		(f.Since.IsZero() || !l.At.Before(f.Since))
}

// List yields the letters that are on the topic now, one per origin, in
// the order of the topic's partitions. Memory grows with the number of letters, not
// with their size.
func List(ctx context.Context, c *client.Client, topic string, f Filter) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		first, err := c.FirstOffsets(ctx, topic)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		end, err := c.EndOffsets(ctx, topic)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		seen := map[Origin]bool{}
		for p, to := range end[topic] {
			for m, err := range c.Range(ctx, topic, p, first[topic][p], to) {
				var l Letter
				if err == nil {
					l, err = Parse(m)
				}
				if err == nil && (seen[l.Origin] || !f.match(&l)) {
					continue
				}
				seen[l.Origin] = true
				if !yield(l, err) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}
