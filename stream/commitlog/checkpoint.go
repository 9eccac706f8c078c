package commitlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// checkpointFormat is the version of the checkpoint documents that are written. Readers know every version from
// 1 to this one. Version 2 added the checksum. Format page: docs/format/state.md.
const checkpointFormat = 2

// ErrBadCheckpoint: a checkpoint of the state is damaged or incomplete. A restore then takes an
// older one, or the state is built from the topics.
var ErrBadCheckpoint = errors.New("state checkpoint is damaged")

// Checkpoint is the document of a copy of a shard's state in the store. The state stood exactly at
// a manifest: nothing consumed beyond its offsets, no row due. Documents are created once each,
// under consecutive numbers, and their Seq ascends with their number. See the package comment,
// "Checkpoints".
type Checkpoint struct {
	Format int   `json:"format"`
	Shard  int   `json:"shard"`
	Number int64 `json:"number"` // 1, 2, 3, …
	// Seq is the manifest that the state stood at, Writer the session that wrote the manifest.
	Seq    int64  `json:"seq"`
	Writer string `json:"writer"`
	// State is the format of the files (docs/format/state.md).
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

func checkpointPrefix(shard int) string { return shardPrefix(shard) + "state/checkpoints/" }

func checkpointKey(shard int, number int64) string {
	return fmt.Sprintf("%s%020d.json", checkpointPrefix(shard), number)
}

func stateFilePrefix(shard int) string { return shardPrefix(shard) + "state/files/" }

// StateFileKey names the n-th file that a session uploads, for a checkpoint of the given number.
func StateFileKey(shard int, number int64, session string, n int64) string {
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
	return number, err == nil && nerr == nil && number > 0 && StateFileKey(shard, number, parts[1], n) == key
}

// CheckpointNumbers lists the numbers of a shard's checkpoints, ascending.
func CheckpointNumbers(ctx context.Context, store sink.Store, shard int) ([]int64, error) {
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

// NewestCheckpoint returns the newest checkpoint of a shard that can be read, nil if there is none.
func NewestCheckpoint(ctx context.Context, store sink.Store, shard int) (*Checkpoint, error) {
	numbers, err := CheckpointNumbers(ctx, store, shard)
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Backward(numbers) {
		c, err := ReadCheckpoint(ctx, store, shard, number)
		if errors.Is(err, ErrBadCheckpoint) {
			continue
		}
		return c, err
	}
	return nil, nil
}

// ReadCheckpoint reads a document; ErrBadCheckpoint if it is missing or not what its name says.
func ReadCheckpoint(ctx context.Context, store sink.Store, shard int, number int64) (*Checkpoint, error) {
	key := checkpointKey(shard, number)
	data, err := sink.ReadAll(ctx, store, key)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	if err != nil {
		return nil, err
	}
	c, err := decodeCheckpoint(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if c.Shard != shard || c.Number != number {
		return nil, fmt.Errorf("%w: %s holds number %d of shard %d", ErrBadCheckpoint, key, c.Number, c.Shard)
	}
	return c, nil
}

// decodeCheckpoint refuses, with ErrBadCheckpoint, what this version does not know.
func decodeCheckpoint(data []byte) (*Checkpoint, error) {
	var c Checkpoint
	sealed, err := decodeSealed(data, &c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	if c.Format < 1 || c.Format > checkpointFormat {
		return nil, fmt.Errorf("%w: format %d, this version reads 1 to %d", ErrBadCheckpoint, c.Format,
			checkpointFormat)
	}
	if c.Format > 1 && !sealed {
		return nil, fmt.Errorf("%w: it has no checksum", ErrBadCheckpoint)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	return &c, nil
}

// stateFileName matches names of the storage engine's files, and no paths.
var stateFileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (c *Checkpoint) check() error {
	if c.Shard < 0 || c.Number < 1 || c.Seq < 1 || len(c.Files) == 0 {
		return fmt.Errorf("number %d of shard %d stands at manifest %d and has %d files", c.Number, c.Shard, c.Seq,
			len(c.Files))
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

// CreateCheckpoint creates the document, under its number, which must be free: sink.ErrExists if it
// is not. All its files must be stored already.
func CreateCheckpoint(ctx context.Context, store sink.Store, c *Checkpoint) error {
	c.Format = checkpointFormat
	data, err := c.encode()
	if err != nil {
		return err
	}
	return store.Create(ctx, checkpointKey(c.Shard, c.Number), data)
}

func (c *Checkpoint) encode() ([]byte, error) {
	data, err := seal.JSON(c)
	if err != nil {
		return nil, fmt.Errorf("encode state checkpoint %d of shard %d: %w", c.Number, c.Shard, err)
	}
	return data, nil
}

// keepCheckpoints is how many of the newest checkpoints are kept.
const keepCheckpoints = 2

// KeptCheckpoints reads the documents that are kept, oldest first, and returns the number of the
// newest, 0 if there is none. With ErrBadCheckpoint, one of them cannot be read and is missing.
func KeptCheckpoints(ctx context.Context, store sink.Store, shard int) (kept []*Checkpoint, newest int64, err error) {
	numbers, err := CheckpointNumbers(ctx, store, shard)
	if err != nil || len(numbers) == 0 {
		return nil, 0, err
	}
	var bad error
	for _, number := range numbers[max(0, len(numbers)-keepCheckpoints):] {
		c, err := ReadCheckpoint(ctx, store, shard, number)
		switch {
		case errors.Is(err, ErrBadCheckpoint):
			bad = err
		case err != nil:
			return nil, 0, err
		default:
			kept = append(kept, c)
		}
	}
	return kept, numbers[len(numbers)-1], bad
}
