package rekey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/group"
	"giantstream/ingest/schema"
)

// Options say what to copy.
type Options struct {
	Client         *client.Client
	Routes         []Route
	SessionTimeout time.Duration // of the groups, see group.Options
	// RecordBytes bounds a value; larger ones are dead letters, which may be
	// too large for the internal topic.
	RecordBytes int
	DeadLetters string
	Clock       func() time.Time
	Log         *slog.Logger
}

// Route is a source topic and where its records go.
type Route struct {
	From, To string
	// Group is the consumer group that shares the partitions of From; what it
	// has committed has been copied.
	Group string
	// Decoder returns a decoder of the topic's values, one for each partition.
	Decoder func() (*decode.Decoder, error)
	// Translator makes JSON of them; nil where they are JSON.
	Translator *schema.Translator
}

// Run copies until ctx ends, or until something fails for good. Brokers and
// registries that are away are waited for.
func Run(ctx context.Context, o Options) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range o.Routes {
		g.Go(func() error {
			return group.Run(ctx, group.Options{Client: o.Client, Group: r.Group, Topics: []string{r.From},
				SessionTimeout: o.SessionTimeout, Log: o.Log}, func(ctx context.Context, a group.Assignment) error {
				return copyPartition(ctx, o, r, a)
			})
		})
	}
	return g.Wait()
}

const (
	fetchBytes = 1 << 20
	fetchWait  = time.Second
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// copier copies one partition.
type copier struct {
	Options
	Route
	assignment group.Assignment
	decoder    *decode.Decoder
	producer   *client.Producer
	letters    *deadletter.Writer
	log        *slog.Logger
	// next is the next offset to read, committed what the group knows of.
	next, committed int64
	json            []byte
}

func copyPartition(ctx context.Context, o Options, r Route, a group.Assignment) (err error) {
	c := &copier{Options: o, Route: r, assignment: a, producer: o.Client.NewProducer(),
		letters: deadletter.NewWriter(o.Client, o.DeadLetters, o.Clock),
		log:     o.Log.With("topic", r.From, "partition", a.Shard),
		next:    a.Committed[r.From], committed: a.Committed[r.From]}
	defer func() {
		closed := errors.Join(c.producer.Close(), c.letters.Close())
		if err == nil {
			err = closed
		}
	}()
	if c.decoder, err = r.Decoder(); err != nil {
		return err
	}
	pause := minBackoff
	for ctx.Err() == nil {
		err := c.step(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			pause = minBackoff
		case !client.Passing(err):
			return fmt.Errorf("copying %s-%d to %s: %w", r.From, a.Shard, r.To, err)
		default:
			c.log.Warn("copying records to the keyed topic failed, trying again", "offset", c.next, "wait", pause, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, maxBackoff)
		}
	}
	return ctx.Err()
}

// step copies what one fetch gives and commits. If it fails, what it has sent
// is sent again by the next.
func (c *copier) step(ctx context.Context) error {
	if c.next < 0 {
		return c.seekOldest(ctx)
	}
	f, err := c.Client.Fetch(ctx, c.From, c.assignment.Shard, c.next, fetchBytes, fetchWait)
	if errors.Is(err, client.ErrOffsetOutOfRange) {
		from := c.next
		if err := c.seekOldest(ctx); err != nil {
			return err
		}
		c.log.Error("records were deleted before they were read, or the topic was created anew; going on with the oldest one", "from", from, "to", c.next)
		return nil
	}
	if err != nil {
		return err
	}
	for i := range f.Records {
		if err := c.copy(ctx, &f.Records[i]); err != nil {
			return err
		}
	}
	if err := errors.Join(c.producer.Flush(ctx), c.letters.Flush(ctx)); err != nil {
		return err
	}
	if c.next = f.Next; c.next == c.committed {
		return nil
	}
	if err := c.assignment.CommitOffsets(map[string]int64{c.From: c.next}); err != nil {
		c.log.Warn("what was copied could not be committed to the group; it may be copied again", "error", err)
		return nil
	}
	c.committed = c.next
	return nil
}

func (c *copier) seekOldest(ctx context.Context) error {
	first, err := c.Client.FirstOffsets(ctx, c.From)
	if err == nil {
		c.next = first[c.From][c.assignment.Shard]
	}
	return err
}

func (c *copier) copy(ctx context.Context, m *kafka.Message) error {
	if len(m.Value) > c.RecordBytes {
		return c.letters.Publish(ctx, deadletter.FromMessage(*m, &decode.Fault{Code: decode.RecordTooLarge,
			Message: fmt.Sprintf("the value has %d bytes; the limit is %d", len(m.Value), c.RecordBytes)}))
	}
	key, err := c.key(ctx, m)
	if err != nil {
		return fmt.Errorf("offset %d: %w", m.Offset, err)
	}
	return c.producer.Send(ctx, kafka.Message{Topic: c.To, Key: key, Value: m.Value, Time: m.Time, Headers: withOrigin(m)})
}

// key is the id in the value, else the record's own key.
func (c *copier) key(ctx context.Context, m *kafka.Message) ([]byte, error) {
	value := m.Value
	if c.Translator != nil {
		json, fault, err := c.Translator.JSON(ctx, c.json[:0], m.Value)
		switch {
		case err != nil:
			return nil, err
		case fault != nil: // the shard's dead letter
			return m.Key, nil //nolint:nilerr // a fault is the record's, no failure of ours
		}
		if value = json; json != nil {
			c.json = json
		}
	}
	if id, _, ok := c.decoder.Route(value); ok {
		return []byte(id), nil
	}
	return m.Key, nil
}

// Lag counts the records of the source topics that are not copied yet.
func Lag(ctx context.Context, c *client.Client, routes []Route) (open int64, err error) {
	for _, r := range routes {
		end, err := c.EndOffsets(ctx, r.From)
		if err != nil {
			return 0, err
		}
		first, err := c.FirstOffsets(ctx, r.From)
		if err != nil {
			return 0, err
		}
		done, err := c.Committed(ctx, r.Group, r.From, len(end[r.From]))
		if err != nil {
			return 0, err
		}
		for p, e := range end[r.From] {
			open += max(0, e-max(done[p], first[r.From][p]))
		}
	}
	return open, nil
}
