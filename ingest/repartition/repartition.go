package repartition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/group"
	"giantstream/ingest/schema"
	"giantstream/internal/retry"
)

// Options say what to copy.
type Options struct {
	Client         *client.Client
	Routes         []Route
	SessionTimeout time.Duration // of the groups, see group.Options
	// RecordBytes bounds a value. Larger values, which the internal topic may refuse, become dead
	// letters.
	RecordBytes int
	DeadLetters string
	Clock       func() time.Time
	// OnLost is called for offsets, from included and to not, whose records were deleted before they
	// were copied.
	OnLost func(topic string, partition int, from, to int64)
	// Protocol is as in group.Options.
	Protocol string
	Log      *slog.Logger
}

// Route is a source topic and where its records go.
type Route struct {
	From, To string
	// Group is the consumer group that shares the partitions of From. What it has committed has
	// been copied.
	Group string
	// Epoch counts the topics that had this name before. Records of a later epoch have later versions.
	Epoch int64
	// Decoder returns a new decoder of the topic's values; it is called for each partition.
	Decoder func() (*decode.Decoder, error)
	// Translator makes JSON of them; nil where they are JSON.
	Translator *schema.Translator
	// Positions say from where to copy if the group does not stand where the copier has committed; nil to trust it.
	Positions Positions
}

// Positions remember how far a topic is copied, apart from the consumer group: people move groups, and brokers forget
// their offsets.
type Positions interface {
	// Copied returns below which offset all of a partition is copied, negative if that is not remembered.
	Copied(ctx context.Context, partition int) (next int64, err error)
	NoteCopied(ctx context.Context, partition int, next int64) error
}

// noteEvery is how old what Positions remember may become. A copier that was killed and whose group was moved then
// copies that much again.
const noteEvery = 10 * time.Minute

// position returns from where to copy a partition of which the group has a commit, negative from its oldest record, and
// below which offset all is known to be copied, negative if that is not known. A group that was moved back has records
// copied again, and one that was moved forward leaves none out.
func (r *Route) position(ctx context.Context, partition int, has client.Commit) (from, known int64, err error) {
	if has.Own || r.Positions == nil {
		return has.Offset, has.Offset, nil
	}
	if known, err = r.Positions.Copied(ctx, partition); err != nil || known < 0 {
		return has.Offset, known, err
	}
	return min(has.Offset, known), known, nil
}

// Run copies until ctx ends or an error is final. It waits for brokers and registries that are
// away.
func Run(ctx context.Context, o Options) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range o.Routes {
		g.Go(func() error {
			return group.Run(ctx, group.Options{Client: o.Client, WatchPartitions: true,
				Group: r.Group, Protocol: o.Protocol, Topics: []string{r.From},
				SessionTimeout: o.SessionTimeout, Log: o.Log}, func(ctx context.Context, a group.Assignment) error {
				return copyPartition(ctx, o, r, a)
			})
		})
	}
	return g.Wait()
}

// copier copies one partition.
type copier struct {
	Options
	Route
	assignment group.Assignment
	decoder    *decode.Decoder
	producer   *client.Producer
	letters    *deadletter.Writer
	log        *slog.Logger
	committed  int64 // offset that the copier has committed, negative for none
	// uncommitted is one line a minute about commits that fail, not one for each fetch.
	uncommitted retry.Outage
	noted       int64 // offset that Positions have
	notedAt     time.Time
	json        []byte
}

func copyPartition(ctx context.Context, o Options, r Route, a group.Assignment) (err error) {
	c := &copier{Options: o, Route: r, assignment: a, producer: o.Client.NewProducer(),
		letters: deadletter.NewWriter(o.Client, o.DeadLetters, o.Clock),
		log:     o.Log.With("topic", r.From, "partition", a.Shard)}
	defer func() {
		closed := errors.Join(c.producer.Close(), c.letters.Close())
		if err == nil {
			err = closed
		}
	}()
	if c.decoder, err = r.Decoder(); err != nil {
		return err
	}
	from, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("how far %s-%d is copied: %w", r.From, a.Shard, err)
	}
	defer c.end()
	in := client.Reader{Client: o.Client, Topic: r.From, Partition: a.Shard, Offset: from,
		FollowRecreated: true, Log: c.log}
	if o.OnLost != nil {
		in.OnLost = func(from, to int64) { o.OnLost(r.From, a.Shard, from, to) }
	}
	err = in.Run(ctx, c.copyAll)
	if ctx.Err() == nil {
		err = fmt.Errorf("copying %s-%d to %s: %w", r.From, a.Shard, r.To, err)
	}
	return err
}

// begin returns the offset to copy from.
func (c *copier) begin(ctx context.Context) (from int64, err error) {
	has, err := c.assignment.Committed(ctx, c.From)
	if err != nil {
		return 0, err
	}
	from, known, err := c.position(ctx, c.assignment.Shard, has)
	if err != nil {
		return 0, err
	}
	c.committed, c.noted = -1, -1 // what others have committed is replaced at once
	if has.Own {
		c.committed = has.Offset
	}
	if known < 0 || known == has.Offset {
		return from, nil
	}
	c.log.Warn("the consumer group does not stand where its copier has committed: a person has moved it, or the "+
		"broker has forgotten its offset", "group", c.Group, "group_offset", has.Offset, "copied", known,
		"copying_from", from)
	if from < known { // what the topic has deleted of that is not lost
		first, err := c.Client.FirstOffsets(ctx, c.From)
		if err != nil {
			return 0, err
		}
		if p := c.assignment.Shard; p < len(first[c.From]) {
			from = max(from, min(known, first[c.From][p]))
		}
	}
	return from, nil
}

// end notes how far the partition is copied.
func (c *copier) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if c.Positions == nil || c.committed <= c.noted {
		return
	}
	if err := c.Positions.NoteCopied(ctx, c.assignment.Shard, c.committed); err != nil {
		c.log.Warn("how far the topic is copied was not noted; if its consumer group is moved, records are copied "+
			"again", "error", err)
	}
}

// commit commits that everything below an offset is copied. The group has no commit of a copier before Positions know
// anything.
func (c *copier) commit(ctx context.Context, next int64) error {
	if now := c.Clock(); c.Positions != nil && (c.noted < 0 || now.Sub(c.notedAt) >= noteEvery) {
		if err := c.Positions.NoteCopied(ctx, c.assignment.Shard, next); err != nil {
			return err
		}
		c.noted, c.notedAt = next, now
	}
	return c.assignment.CommitOffsets(map[string]int64{c.From: next})
}

// copyAll copies what one fetch gave and commits. If it fails, the reader hands it the same records
// again.
func (c *copier) copyAll(ctx context.Context, got client.Fetched) error {
	for i := range got.Records {
		if err := c.copy(ctx, &got.Records[i]); err != nil {
			return err
		}
	}
	for i := range got.TooLarge {
		l := deadletter.FromTooLarge(&got.TooLarge[i], c.RecordBytes)
		l.Epoch = c.Epoch
		if err := c.letters.Publish(ctx, l); err != nil {
			return err
		}
	}
	if err := errors.Join(c.producer.Flush(ctx), c.letters.Flush(ctx)); err != nil {
		return err
	}
	if got.Next == c.committed {
		return nil
	}
	if err := c.commit(ctx, got.Next); err != nil {
		if c.uncommitted.Failed(c.From, time.Now()) {
			c.log.Warn("what was copied is not committed to the group; it may be copied again", "error", err)
		}
		return nil
	}
	c.uncommitted.EndFailure(c.From, time.Now())
	c.committed = got.Next
	return nil
}

func (c *copier) copy(ctx context.Context, m *kafka.Message) error {
	if len(m.Value) > c.RecordBytes {
		l := deadletter.FromMessage(*m, &decode.Fault{Code: decode.RecordTooLarge,
			Message: fmt.Sprintf("the value has %d bytes; the limit is %d", len(m.Value), c.RecordBytes)})
		l.Epoch = c.Epoch
		return c.letters.Publish(ctx, l)
	}
	key, fromObject, err := c.key(ctx, m)
	if err != nil {
		return fmt.Errorf("offset %d: %w", m.Offset, err)
	}
	headers := withOrigin(m, c.Epoch)
	if fromObject {
		headers = append(headers, kafka.Header{Key: ingest.KeyHeader, Value: m.Key})
	}
	return c.producer.Send(ctx,
		kafka.Message{Topic: c.To, Key: key, Value: m.Value, Time: m.Time, Headers: headers})
}

// key is the id in the value or in a key that is an object, else the record's own key. fromObject: the id is in an
// object, which may say more.
func (c *copier) key(ctx context.Context, m *kafka.Message) (key []byte, fromObject bool, err error) {
	value := m.Value
	if c.Translator != nil {
		json, fault, err := c.Translator.JSON(ctx, c.json[:0], m.Value)
		switch {
		case err != nil:
			return nil, false, err
		case fault != nil: // the shard's dead letter
			return m.Key, false, nil //nolint:nilerr // a fault is the record's, no failure of ours
		}
		if value = json; json != nil {
			c.json = json
		}
	}
	if id, _, ok := c.decoder.Route(value); ok {
		return []byte(id), false, nil
	}
	object, err := c.Translator.Key(ctx, m.Key)
	if err != nil {
		return nil, false, err
	}
	if id, fault := c.decoder.KeyID(object); fault == nil {
		return []byte(id), id != string(object), nil
	}
	return m.Key, false, nil
}

// Lag tells each, for each partition of the source topics, where its records end and how many of them are not copied
// yet.
func Lag(ctx context.Context, c *client.Client, routes []Route,
	each func(group string, partition int, end, open int64)) error {
	for _, r := range routes {
		end, err := c.EndOffsets(ctx, r.From)
		if err != nil {
			return err
		}
		first, err := c.FirstOffsets(ctx, r.From)
		if err != nil {
			return err
		}
		done, err := c.Committed(ctx, r.Group, r.From, len(end[r.From]))
		if err != nil {
			return err
		}
		for p, e := range end[r.From] {
			from, _, err := r.position(ctx, p, done[p])
			if err != nil {
				return err
			}
			each(r.Group, p, e, max(0, e-max(from, first[r.From][p])))
		}
	}
	return nil
}
