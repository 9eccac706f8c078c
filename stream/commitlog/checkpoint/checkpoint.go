package checkpoint

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

// format is the version of the checkpoint documents that are written. Readers know every version from
// 1 to this one. Version 2 added the checksum. Format page: docs/format/state.md.
const format = 2

// ErrBad: a checkpoint of the state is damaged or incomplete. A restore then takes an
// older one, or the state is built from the topics.
var ErrBad = errors.New("state checkpoint is damaged")

// Document is the document of a copy of a shard's state in the store. The state stood exactly at
// a manifest: nothing consumed beyond its offsets, no row due. Documents are created once each,
// under consecutive numbers, and their Seq ascends with their number. See the package comment,
// "Checkpoints".
type Document struct {
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
	Files   []File    `json:"files"`
	Created time.Time `json:"created"`
}

// File is one file of a state and the object that holds it.
type File struct {
	Name   string `json:"name"` // in the state directory
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of the content, hexadecimal
}

// Bytes is the size of the state.
func (c *Document) Bytes() (n int64) {
	for _, f := range c.Files {
		n += f.Bytes
	}
	return n
}

func prefix(shard int) string { return fmt.Sprintf("shards/%d/state/checkpoints/", shard) }

// Key is the object of a shard's checkpoint of this number.
func Key(shard int, number int64) string {
	return fmt.Sprintf("%s%020d.json", prefix(shard), number)
}

func filePrefix(shard int) string { return fmt.Sprintf("shards/%d/state/files/", shard) }

// FileKey names the n-th file that a session uploads, for a checkpoint of the given number.
func FileKey(shard int, number int64, session string, n int64) string {
	return fmt.Sprintf("%s%020d-%s-%d", filePrefix(shard), number, session, n)
}

// fileNumber is the number in the name of a state file.
func fileNumber(shard int, key string) (number int64, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, filePrefix(shard)), "-")
	if len(parts) != 3 {
		return 0, false
	}
	number, err := strconv.ParseInt(parts[0], 10, 64)
	n, nerr := strconv.ParseInt(parts[2], 10, 64)
	return number, err == nil && nerr == nil && number > 0 && FileKey(shard, number, parts[1], n) == key
}

// Numbers lists the numbers of a shard's checkpoints, ascending.
func Numbers(ctx context.Context, store sink.Store, shard int) ([]int64, error) {
	var numbers []int64
	for info, err := range store.List(ctx, prefix(shard), "") {
		if err != nil {
			return nil, fmt.Errorf("list the state checkpoints of shard %d: %w", shard, err)
		}
		if number, ok := numberOf(shard, info.Key); ok {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// numberOf is the inverse of Key.
func numberOf(shard int, key string) (number int64, ok bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, prefix(shard)), ".json")
	number, err := strconv.ParseInt(name, 10, 64)
	return number, err == nil && Key(shard, number) == key
}

// Newest returns the newest checkpoint of a shard that can be read, nil if there is none.
func Newest(ctx context.Context, store sink.Store, shard int) (*Document, error) {
	numbers, err := Numbers(ctx, store, shard)
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Backward(numbers) {
		c, err := Read(ctx, store, shard, number)
		if errors.Is(err, ErrBad) {
			continue
		}
		return c, err
	}
	return nil, nil
}

// Read reads a document; ErrBad if it is missing or not what its name says.
func Read(ctx context.Context, store sink.Store, shard int, number int64) (*Document, error) {
	key := Key(shard, number)
	data, err := sink.ReadAll(ctx, store, key)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrBad, err)
	}
	if err != nil {
		return nil, err
	}
	c, err := decode(data, sink.PlaceOf(store, key))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if c.Shard != shard || c.Number != number {
		return nil, fmt.Errorf("%w: %s holds number %d of shard %d", ErrBad, key, c.Number, c.Shard)
	}
	return c, nil
}

// decode refuses, with ErrBad, what this version does not know.
func decode(data []byte, at seal.Place) (*Document, error) {
	var c Document
	sealed, err := seal.Decode(data, at, &c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBad, err)
	}
	if c.Format < 1 || c.Format > format {
		return nil, fmt.Errorf("%w: format %d, this version reads 1 to %d", ErrBad, c.Format,
			format)
	}
	if c.Format > 1 && !sealed {
		return nil, fmt.Errorf("%w: it has no checksum", ErrBad)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBad, err)
	}
	return &c, nil
}

// fileName matches names of the storage engine's files, and no paths.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (c *Document) check() error {
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
		_, ours := fileNumber(c.Shard, f.Key)
		if err != nil || len(sum) != 32 || !ours || f.Bytes < 0 || !fileName.MatchString(f.Name) || names[f.Name] {
			return fmt.Errorf("file %q in object %q, of %d bytes", f.Name, f.Key, f.Bytes)
		}
		names[f.Name] = true
	}
	return nil
}

// Create creates the document, under its number, which must be free: sink.ErrExists if it
// is not. All its files must be stored already.
func Create(ctx context.Context, store sink.Store, c *Document) error {
	c.Format = format
	data, err := c.encode(sink.PlaceOf(store, Key(c.Shard, c.Number)))
	if err != nil {
		return err
	}
	return store.Create(ctx, Key(c.Shard, c.Number), data)
}

func (c *Document) encode(at seal.Place) ([]byte, error) {
	data, err := seal.JSON(c, at)
	if err != nil {
		return nil, fmt.Errorf("encode state checkpoint %d of shard %d: %w", c.Number, c.Shard, err)
	}
	return data, nil
}

// keep is how many of the newest checkpoints are kept.
const keep = 2

// Kept reads the documents that are kept, oldest first, and returns the number of the
// newest, 0 if there is none. With ErrBad, one of them cannot be read and is missing.
func Kept(ctx context.Context, store sink.Store, shard int) (kept []*Document, newest int64, err error) {
	numbers, err := Numbers(ctx, store, shard)
	if err != nil || len(numbers) == 0 {
		return nil, 0, err
	}
	var bad error
	for _, number := range numbers[max(0, len(numbers)-keep):] {
		c, err := Read(ctx, store, shard, number)
		switch {
		case errors.Is(err, ErrBad):
			bad = err
		case err != nil:
			return nil, 0, err
		default:
			kept = append(kept, c)
		}
	}
	return kept, numbers[len(numbers)-1], bad
}
