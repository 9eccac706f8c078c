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
	// Topic the record came from, or where a copy of it was read.
	Topic string
	// Since: letters written at or after this time.
	Since time.Time
	// Before: letters written before this time.
	Before time.Time
	// All: also letters that are closed, because their records were sent again or people have dismissed them.
	// Dismissed: none but those that are dismissed.
	All, Dismissed bool
	// Repeated: each letter, not one per origin. Several copies of a record may have been refused.
	Repeated bool
}

func (f Filter) match(l *Letter) bool {
	return (f.All || f.Dismissed || l.Open()) &&
		(!f.Dismissed || !l.Dismissed.IsZero()) &&
		(f.Before.IsZero() || l.At.Before(f.Before)) &&
		(f.Code == "" || f.Code == l.Code) &&
		(f.Topic == "" || f.Topic == l.Topic || f.Topic == l.CopiedTo) &&
		(f.Since.IsZero() || !l.At.Before(f.Since))
}

// List yields the letters that are on the topic now, one per origin, partition after partition. A
// record that is not a letter is yielded as Letter.Foreign and hides none of the others. A letter whose
// record was sent again is closed, and so is one that was dismissed. They are yielded with Filter.All only: if the
// record has failed again, it has a newer letter. The topic is read twice, first for the marks. Memory grows with the
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
		closed, err := closings(ctx, c, topic, first[topic], end[topic])
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
					if _, _, is := marked(&m); is {
						continue
					}
					if l, err = Parse(m); err != nil {
						l = foreign(m, err)
					}
				}
				// A record of a topic is one for good. A line of a file may have become another one.
				if c, ok := closed[l.Origin]; ok && (l.File == "" || !l.At.After(c.at)) {
					if l.Replayed = c.at; c.what == dismissedMark {
						l.Replayed, l.Dismissed, l.Reason = time.Time{}, c.at, c.reason
					}
				}
				if seen[l.Origin] || !f.match(&l) {
					continue
				}
				seen[l.Origin] = !f.Repeated
				if !yield(l, nil) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// closings returns what has last become of the letters on a topic, by origin.
func closings(ctx context.Context, c *client.Client, topic string, first, end []int64) (map[Origin]closing, error) {
	last := map[Origin]closing{}
	for p, to := range end {
		for m, err := range c.Range(ctx, topic, p, first[p], to) {
			if _, tooLarge := errors.AsType[*client.TooLarge](err); tooLarge {
				continue
			}
			if err != nil {
				return nil, err
			}
			if o, c, ok := marked(&m); ok && c.at.After(last[o].at) {
				last[o] = c
			}
		}
	}
	return last, nil
}
