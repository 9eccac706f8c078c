package deadletter

import (
	"context"
	"errors"
	"fmt"
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
	// All: also letters whose records were sent again since they were written.
	All bool
}

func (f Filter) match(l *Letter) bool {
	return (f.All || l.Replayed.IsZero()) &&
		(f.Code == "" || f.Code == l.Code) &&
		(f.Topic == "" || f.Topic == l.Topic) &&
		(f.Since.IsZero() || !l.At.Before(f.Since))
}

// List yields the letters that are on the topic now, one per origin, partition after partition. A
// record that is not a letter is yielded as Letter.Foreign and hides none of the others. A letter whose
// record was sent again is closed, and yielded with Filter.All only: if the record has failed again, it
// has a newer letter. The topic is read twice, first for what was sent again. Memory grows with the
// number of letters, not with their size.
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
		replayed, err := replays(ctx, c, topic, first[topic], end[topic])
		if err != nil {
			yield(Letter{}, err)
			return
		}
		seen := map[Origin]bool{}
		for p, to := range end[topic] {
			for m, err := range c.Range(ctx, topic, p, first[topic][p], to) {
				var l Letter
				large, tooLarge := errors.AsType[*client.TooLarge](err)
				switch {
				case tooLarge: // letters are not
					l = foreign(large.Message, fmt.Errorf("%w: %w", errNotALetter, large))
					l.Size, l.SHA256 = large.Size, large.SHA256
				case err != nil:
					yield(Letter{}, err)
					return
				default:
					if _, is := marked(&m); is {
						continue
					}
					if l, err = Parse(m); err != nil {
						l = foreign(m, err)
					}
				}
				// A record of a topic is one for good. A line of a file may have become another one.
				if at, ok := replayed[l.Origin]; ok && (l.File == "" || !l.At.After(at)) {
					l.Replayed = at
				}
				if seen[l.Origin] || !f.match(&l) {
					continue
				}
				seen[l.Origin] = true
				if !yield(l, nil) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// replays returns when the letters on a topic were last sent again, by origin.
func replays(ctx context.Context, c *client.Client, topic string, first, end []int64) (map[Origin]time.Time, error) {
	at := map[Origin]time.Time{}
	for p, to := range end {
		for m, err := range c.Range(ctx, topic, p, first[p], to) {
			if _, tooLarge := errors.AsType[*client.TooLarge](err); tooLarge {
				continue
			}
			if err != nil {
				return nil, err
			}
			if o, ok := marked(&m); ok && m.Time.After(at[o]) {
				at[o] = m.Time
			}
		}
	}
	return at, nil
}
