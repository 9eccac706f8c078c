package stream

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/sink"
)

// CheckpointFormat is the version of the checkpoint documents. Format page:
// docs/format/state.md.
const CheckpointFormat = 1

// ErrBadCheckpoint: a checkpoint of the state is damaged or incomplete. A
// restore then takes an older one, or the state is built from the topics.
var ErrBadCheckpoint = errors.New("state checkpoint is damaged")

// Checkpoint is a copy of a shard's state in the store, taken when the state
// stood exactly at a manifest: nothing consumed beyond its offsets, no row due.
// Documents are created once each, under consecutive numbers, and ascend in
// Seq with their number. See doc.go, "Checkpoints".
type Checkpoint struct {
	Format int   `json:"format"`
	Shard  int   `json:"shard"`
	Number int64 `json:"number"` // 1, 2, 3, …
	// Seq is the manifest that the state stood at, Writer who wrote that.
	Seq    int64  `json:"seq"`
	Writer string `json:"writer"`
	// State is the StateFormat of the files.
	State   int              `json:"state_format"`
	Applied map[string]int64 `json:"applied"`
	Nodes   int64            `json:"nodes"`
	Edges   int64            `json:"edges"`
	// Files make up the state directory.
	Files   []CheckpointFile `json:"files"`
	Created time.Time        `json:"created"`
}

// CheckpointFile is one file of a state and the object that holds it.
type CheckpointFile struct {
	Name   string `json:"name"` // in the state directory
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of the content, hexadecimal
}

// Bytes is the size of the state.
func (c *Checkpoint) Bytes() (n int64) {
	for _, f := range c.Files {
		n += f.Bytes
	}
	return n
}

func checkpointPrefix(shard int) string { return ShardPrefix(shard) + "state/checkpoints/" }

func checkpointKey(shard int, number int64) string {
	return fmt.Sprintf("%s%020d.json", checkpointPrefix(shard), number)
}

func stateFilePrefix(shard int) string { return ShardPrefix(shard) + "state/files/" }

// stateFileKey names the n-th file that a session uploads, when it is about to
// create a checkpoint of the given number.
func stateFileKey(shard int, number int64, session string, n int64) string {
	return fmt.Sprintf("%s%020d-%s-%d", stateFilePrefix(shard), number, session, n)
}

// stateFileNumber is the number in the name of a state file.
func stateFileNumber(shard int, key string) (number int64, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, stateFilePrefix(shard)), "-")
	if len(parts) != 3 {
		return 0, false
	}
	number, err := strconv.ParseInt(parts[0], 10, 64)
	n, nerr := strconv.ParseInt(parts[2], 10, 64)
	return number, err == nil && nerr == nil && number > 0 && stateFileKey(shard, number, parts[1], n) == key
}

// checkpointNumbers lists the numbers of a shard's checkpoints, ascending.
func checkpointNumbers(ctx context.Context, store sink.Store, shard int) ([]int64, error) {
	var numbers []int64
	for info, err := range store.List(ctx, checkpointPrefix(shard), "") {
		if err != nil {
			return nil, fmt.Errorf("list the state checkpoints of shard %d: %w", shard, err)
		}
		if number, ok := checkpointNumber(shard, info.Key); ok {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// checkpointNumber is the inverse of checkpointKey.
func checkpointNumber(shard int, key string) (number int64, ok bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, checkpointPrefix(shard)), ".json")
	number, err := strconv.ParseInt(name, 10, 64)
	return number, err == nil && checkpointKey(shard, number) == key
}

// NewestCheckpoint returns the newest checkpoint of a shard that can be read,
// nil if there is none.
func NewestCheckpoint(ctx context.Context, store sink.Store, shard int) (*Checkpoint, error) {
	numbers, err := checkpointNumbers(ctx, store, shard)
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Backward(numbers) {
		c, err := readCheckpoint(ctx, store, shard, number)
		if errors.Is(err, ErrBadCheckpoint) {
			continue
		}
		return c, err
	}
	return nil, nil
}

// readCheckpoint reads a document; ErrBadCheckpoint if it is not there, or not
// what its name says.
func readCheckpoint(ctx context.Context, store sink.Store, shard int, number int64) (*Checkpoint, error) {
	key := checkpointKey(shard, number)
	data, err := sink.ReadAll(ctx, store, key)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	if err != nil {
		return nil, err
	}
	c, err := DecodeCheckpoint(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if c.Shard != shard || c.Number != number {
		return nil, fmt.Errorf("%w: %s holds number %d of shard %d", ErrBadCheckpoint, key, c.Number, c.Shard)
	}
	return c, nil
}

// DecodeCheckpoint reads a checkpoint document and refuses, with
// ErrBadCheckpoint, what this version does not know.
func DecodeCheckpoint(data []byte) (*Checkpoint, error) {
	var c Checkpoint
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	if c.Format != CheckpointFormat {
		return nil, fmt.Errorf("%w: format %d, this version reads %d", ErrBadCheckpoint, c.Format, CheckpointFormat)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	return &c, nil
}

// stateFileName is what files of the storage engine are called: no path.
var stateFileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (c *Checkpoint) check() error {
	if c.Shard < 0 || c.Number < 1 || c.Seq < 1 || len(c.Files) == 0 {
		return fmt.Errorf("number %d of shard %d stands at manifest %d and has %d files", c.Number, c.Shard, c.Seq, len(c.Files))
	}
	for topic, offset := range c.Applied {
		if offset < 0 {
			return fmt.Errorf("offset %d of topic %q", offset, topic)
		}
	}
	names := make(map[string]bool, len(c.Files))
	for _, f := range c.Files {
		sum, err := hex.DecodeString(f.SHA256)
		_, ours := stateFileNumber(c.Shard, f.Key)
		if err != nil || len(sum) != 32 || !ours || f.Bytes < 0 || !stateFileName.MatchString(f.Name) || names[f.Name] {
			return fmt.Errorf("file %q in object %q, of %d bytes", f.Name, f.Key, f.Bytes)
		}
		names[f.Name] = true
	}
	return nil
}

func (c *Checkpoint) encode() ([]byte, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode state checkpoint %d of shard %d: %w", c.Number, c.Shard, err)
	}
	return append(data, '\n'), nil
}
