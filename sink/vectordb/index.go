package vectordb

import (
	"context"
	"fmt"
	"slices"

	"giantstream/internal/retry"
	"giantstream/sink/embedding"
)

// Errors that no retry mends (retry.Final).
const (
	// ErrTakenOver: another process has opened the index, and goes on where this one stopped.
	ErrTakenOver = retry.FinalError("another process writes to this sink now")
	// ErrDimension: a vector does not fit the table of its generation.
	ErrDimension = retry.FinalError("wrong number of dimensions")
	// ErrRefused: the database refuses what it is asked, and would again.
	ErrRefused = retry.FinalError("refused")
	// ErrTopic: the topic is not the one that the index follows.
	ErrTopic = retry.FinalError("another topic")
	// ErrOwner: the tables are of another pipeline than the topic.
	ErrOwner = retry.FinalError("another pipeline")
	// ErrUnclaimed: the topic was created again, and no pipeline has claimed it yet.
	ErrUnclaimed = retry.FinalError("no pipeline owns the topic yet")
	// ErrNoControl: an Index cannot tell whether a table is complete without control records.
	ErrNoControl = retry.FinalError("needs control records")
)

// Record is a record of the topic: an embedding, a tombstone, a completion, or attributes of a node.
type Record struct {
	// Offset on the partition, which is the record's version.
	Offset int64
	embedding.Record
	// Completion, if not nil, makes the record a control record; the embedding is empty then.
	Completion *embedding.Completion
	// OfAttributes: the record says what attributes NodeID has, and nothing else. Values are in the order of the
	// index's attributes, nil for one that the node lacks.
	OfAttributes bool
	Values       []any
}

// Table holds the vectors of one generation.
type Table struct {
	// Serial counts the tables of a sink from 1. It is in the name, so that no table gets the name of an older one.
	Serial     int64 `json:"serial"`
	Generation int64 `json:"generation"`
	Space      int64 `json:"space"`
	// Dim is 0 until the first vector arrives.
	Dim int `json:"dim"`
	// Until are the ends of the partitions when the table was made. Before they are reached it is not complete.
	Until []int64 `json:"until"`
	// Retired: it serves until another does, and no record changes it.
	Retired bool `json:"retired,omitempty"`
}

// Name returns what the table is called in the database of a sink.
func (t Table) Name(sink string) string {
	return fmt.Sprintf("%s_g%d_%d", sink, t.Generation, t.Serial)
}

// Catalog is what a sink remembers of its tables, and of the topic that it follows.
type Catalog struct {
	Topic string `json:"topic"`
	// TopicID tells the topic from an older one of the same name; "" where brokers give none.
	TopicID string `json:"topic_id"`
	// Owner is the id of the pipeline whose vectors the tables have; "" where the topic has had no owner yet, and in
	// catalogs of older releases.
	Owner      string `json:"owner,omitempty"`
	Partitions int    `json:"partitions"`
	// Epoch counts how often the topic was read from its beginning.
	Epoch  int64   `json:"epoch"`
	Serial int64   `json:"serial"` // of the newest table
	Tables []Table `json:"tables"`
	Served int64   `json:"served"` // the serial of the table that readers see, 0 for none
}

// find returns the table of a generation that records change, nil if there is none.
func (c *Catalog) find(generation int64) *Table {
	i := slices.IndexFunc(c.Tables, func(t Table) bool { return t.Generation == generation && !t.Retired })
	if i < 0 {
		return nil
	}
	return &c.Tables[i]
}

// bySerial returns a table, nil if there is none.
func (c *Catalog) bySerial(serial int64) *Table {
	i := slices.IndexFunc(c.Tables, func(t Table) bool { return t.Serial == serial })
	if i < 0 {
		return nil
	}
	return &c.Tables[i]
}

// asked is how many nodes a request of Remaining asks for.
const asked = 1000

// Remaining is Index.Remaining: count returns how many of some nodes a table has, by its name; 0 if there is no
// such table.
func (c *Catalog) Remaining(sink string, nodes []string, count func(table string, nodes []string) (int, error)) (
	map[string]int, error) {
	left := map[string]int{}
	for _, t := range c.Tables {
		name := t.Name(sink)
		for some := range slices.Chunk(nodes, asked) {
			n, err := count(name, some)
			if err != nil {
				return nil, fmt.Errorf("look into %s: %w", name, err)
			}
			if n > 0 {
				left[name] += n
			}
		}
	}
	return left, nil
}

func (c *Catalog) clone() Catalog {
	out := *c
	out.Tables = slices.Clone(c.Tables)
	return out
}

// Completed is the newest control record of a shard in a partition.
type Completed struct {
	Generation int64 `json:"generation"`
	Shards     int   `json:"shards"`
	Offset     int64 `json:"offset"`
}

// Progress is how far a partition is in the index.
type Progress struct {
	Epoch int64 `json:"epoch"`
	// Next is the offset of the first record that is not.
	Next int64 `json:"next"`
	// Completed is by shard.
	Completed map[int]Completed `json:"completed,omitempty"`
	// Last is the offset of the newest record of each table, by serial.
	Last map[int64]int64 `json:"last,omitempty"`
	// Cursors are where a source without offsets of its own continues, by shard: see Follower.Mark.
	Cursors map[int]string `json:"cursors,omitempty"`
}

// Saved is what an index remembers. Progress is by partition; one that is missing begins at the topic's oldest record.
type Saved struct {
	Catalog  Catalog
	Progress map[int]Progress
}

// Change is what a batch does to one table. Every node occurs once in Upserts or Deletes, and once in Attributes.
type Change struct {
	Table Table
	// Upserts have a vector, or the status embedding.NoText.
	Upserts []Record
	// Deletes have a node id and an offset.
	Deletes []Record
	// Attributes go to rows of a lower offset that are there after Upserts and Deletes. Others are left out: the topic
	// has the node's attributes again behind its embedding.
	Attributes []Record
}

// Batch is a run of records of one partition.
type Batch struct {
	Partition int
	From      int64 // the Next of the Progress before
	Changes   []Change
	Progress  Progress // with the batch
}

// Index is a database of vectors. Apply may be called for several partitions at once, and then nothing else is.
// All methods may be repeated after a failure, whether or not they had an effect.
type Index interface {
	// Open checks that the database can do what is needed, takes the sink over from any other process, and returns what
	// is remembered.
	Open(ctx context.Context) (Saved, error)
	// Check says why a node cannot be stored, whatever its vector. It needs no connection.
	Check(nodeID string) error
	// Save stores the catalog.
	Save(ctx context.Context, c Catalog) error
	// Create makes an empty table unless it exists, and tells one that exists of its Dim and of new attributes.
	Create(ctx context.Context, t Table) error
	// Apply changes rows of a lower offset, and stores the progress. Attributes have offsets of their own. A row that
	// is there keeps them when it gets another vector.
	Apply(ctx context.Context, b Batch) error
	// Newer reports whether each node of the table old has a row of a higher offset in the table by; ErrNoControl if
	// the database cannot tell.
	Newer(ctx context.Context, old, by Table) (bool, error)
	// Finish makes the table fast to search. It returns when that is done.
	Finish(ctx context.Context, t Table) error
	// Serve leads readers to a table, all at once, and stores the catalog.
	Serve(ctx context.Context, t Table, c Catalog) error
	// Drop removes a table that no reader is led to.
	Drop(ctx context.Context, t Table) error
	// Remaining returns the tables that have a row of any of the nodes, and of how many. It needs no Open, takes
	// nothing over and changes nothing.
	Remaining(ctx context.Context, nodes []string) (map[string]int, error)
	Close() error
}

// Attributed is an Index whose tables have attributes of nodes. Any other gets no records of attributes.
type Attributed interface {
	// Attributes are what Record.Values are in the order of.
	Attributes() []Attribute
}

// Flusher is an Index that holds back what Apply was given. What it has not stored, it forgets with its process: the
// next Open returns the progress that is stored. Save and Serve store everything before them, too.
type Flusher interface {
	// Flush stores what was held back for long enough, or all of it.
	Flush(ctx context.Context, all bool) error
}
