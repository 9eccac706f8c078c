package commitlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// Published is the cursor of a shard's embeddings: every row up to manifest Seq is published with
// generation Generation. The cursor saves work after a restart. It may be behind, since publishing
// again is harmless.
type Published struct {
	Generation int64 `json:"generation"`
	Seq        int64 `json:"seq"`
	// Format of the embeddings, as embedding.Format.String names it; "" is float32.
	Format string `json:"format,omitempty"`
	// Attributes are the names of those that are published beside the embeddings, with commas between them.
	Attributes string `json:"attributes,omitempty"`
	// Topic is the one that the embeddings were published to, "" in cursors of older versions.
	Topic string `json:"topic,omitempty"`
	// TopicID is the id that the brokers gave it, "" where they give none.
	TopicID string `json:"topic_id,omitempty"`
	// End is the sum of its partitions' end offsets, from after the embeddings were acknowledged.
	End int64 `json:"end,omitempty"`
	// Announced is the generation of the newest control record that says that all of a generation is published.
	Announced int64 `json:"announced,omitempty"`
	// Mixed: nodes may have vectors of a generation other than Generation, so all nodes must be published again.
	Mixed bool `json:"mixed,omitempty"`
	// Ahead is the newest manifest after Seq whose rows may be on the topic, of another generation; 0 if there is none.
	// So no row after Seq is published that a newer one up to Ahead supersedes.
	Ahead int64 `json:"ahead,omitempty"`
	// Writer is the session of the follower that wrote the cursor, and Moves counts how often it was
	// written. Together they make each of its states differ from all others.
	Writer string `json:"writer,omitempty"`
	Moves  int64  `json:"moves,omitempty"`
}

// SinkTopic is what the embeddings topic is at some time.
type SinkTopic struct {
	Name string
	ID   string // "" where brokers give none
	// First and End are sums over its partitions: of the offsets of the oldest records that are
	// kept, and of those that the next records will get.
	First, End int64
}

// Gone says why a topic does not hold the embeddings that were published up to the cursor, "" if it
// does as far as can be told.
func (p Published) Gone(topic SinkTopic) string {
	switch {
	case p.Topic == "":
		return ""
	case p.Topic != topic.Name:
		return fmt.Sprintf("they were published to topic %q", p.Topic)
	case p.TopicID != "" && topic.ID != "" && p.TopicID != topic.ID:
		return fmt.Sprintf("topic %q was deleted and created again", p.Topic)
	case topic.End < p.End:
		return fmt.Sprintf("topic %q has fewer records than were published to it", p.Topic)
	case p.End > 0 && topic.First >= p.End:
		return fmt.Sprintf("topic %q has deleted all records that were published to it", p.Topic)
	}
	return ""
}

// Outlet is a topic that the embeddings of a shard are published to. Each has a cursor of its own, and none knows of
// the other.
type Outlet bool

// The outlets.
const (
	Served Outlet = false // the embeddings topic
	Canary Outlet = true  // the canary topic, which gets new generations first
)

func (o Outlet) key(shard int) string {
	if o == Canary {
		return shardPrefix(shard) + "canary.json"
	}
	return shardPrefix(shard) + "published.json"
}

// Load returns the cursor of a shard, or the zero value if there is none that parses.
func (o Outlet) Load(ctx context.Context, store sink.Store, shard int) (Published, error) {
	c, err := o.Open(ctx, store, shard)
	return c.Published, err
}

func publishedKey(shard int) string { return Served.key(shard) }

// LoadPublished returns the cursor of a shard on the embeddings topic.
func LoadPublished(ctx context.Context, store sink.Store, shard int) (Published, error) {
	return Served.Load(ctx, store, shard)
}

// Keeper keeps the cursors of an outlet elsewhere than in the store, for a reader of the store that writes nothing
// there.
type Keeper interface {
	// Cursor returns what was stored of a shard, nil for nothing.
	Cursor(shard int) []byte
	// Swap stores the next cursor of a shard in place of one that Cursor has returned, or sink.ErrChanged.
	Swap(ctx context.Context, shard int, old, next []byte) error
}

// Cursor is the cursor of a shard as it was read, for a follower that means to move it.
type Cursor struct {
	Published
	store  sink.Store
	keeper Keeper // nil for the store
	shard  int
	key    string
	stored []byte // nil if there was none
}

// OpenCursor reads the cursor of a shard on the embeddings topic.
func OpenCursor(ctx context.Context, store sink.Store, shard int) (Cursor, error) {
	return Served.Open(ctx, store, shard)
}

// OpenKept reads the cursor of a shard that a keeper has, of what was published from a store.
func OpenKept(keeper Keeper, store sink.Store, shard int) Cursor {
	c := Cursor{store: store, keeper: keeper, shard: shard, key: fmt.Sprintf("cursor-of-shard-%d", shard)}
	if c.stored = keeper.Cursor(shard); c.stored != nil {
		c.read()
	}
	return c
}

// Open reads the cursor of a shard. One that is missing or does not parse has the zero value.
func (o Outlet) Open(ctx context.Context, store sink.Store, shard int) (Cursor, error) {
	c := Cursor{store: store, shard: shard, key: o.key(shard)}
	data, err := sink.ReadAll(ctx, store, c.key)
	if errors.Is(err, sink.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read the published cursor of shard %d: %w", shard, err)
	}
	c.stored = data
	c.read()
	return c, nil
}

// read takes over what is stored. A hint that cannot be read is no hint.
func (c *Cursor) read() {
	var p struct {
		Published
		// CanaryShare is how earlier releases say that nodes may have another generation's vectors.
		CanaryShare float64 `json:"canary_share"`
	}
	body, _, err := seal.Open(c.stored, sink.PlaceOf(c.store, c.key))
	if err != nil || json.Unmarshal(body, &p) != nil || p.Seq < 0 || p.Generation < 0 {
		return
	}
	c.Published = p.Published
	c.Mixed = c.Mixed || p.CanaryShare > 0
}

// Equal reports whether two reads have found the same state of the cursor: no process has written it in between.
func (c *Cursor) Equal(other Cursor) bool {
	return (c.stored == nil) == (other.stored == nil) && bytes.Equal(c.stored, other.stored)
}

// Move writes the cursor, unless another follower has written it since it was read: then the error
// is sink.ErrChanged. On a store without compare-and-swap, one that writes between two calls of
// Move is not noticed. by is the session of the follower.
func (c *Cursor) Move(ctx context.Context, to Published, by string) error {
	to.Writer, to.Moves = by, c.Moves+1
	data, err := seal.JSON(to, sink.PlaceOf(c.store, c.key))
	if err != nil {
		return fmt.Errorf("encode the published cursor: %w", err)
	}
	if c.keeper != nil {
		err = c.keeper.Swap(ctx, c.shard, c.stored, data)
	} else {
		err = sink.Swap(ctx, c.store, c.key, c.stored, data)
	}
	if err != nil {
		return fmt.Errorf("move the published cursor %s: %w", c.key, err)
	}
	c.Published, c.stored = to, data
	return nil
}
