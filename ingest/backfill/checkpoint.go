package backfill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"giantstream/ingest/decode"
)

// checkpoint remembers, per topic and input, up to which line records are acknowledged.
type checkpoint struct {
	path string // "" keeps nothing
	file checkpointFile
}

// checkpointFormat 1 had no hashes; an input of such a file is known by size and time alone.
const checkpointFormat = 2

type checkpointFile struct {
	Format int `json:"format"`
	// Mapping is a hash of the mapping, the limits and the epoch. With other ones the same files
	// become other records, or records elsewhere.
	Mapping string                    `json:"mapping"`
	Inputs  map[string]checkpointLine `json:"inputs"`
}

// checkpointLine is valid only for the same content, identified by size and hash, with the same
// modification time, which is the event time of records that have none of their own.
type checkpointLine struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	// SHA256 of the content in hex; "" for objects of a store, which the store's time identifies.
	SHA256 string `json:"sha256,omitempty"`
	// Options are those that the input was read with.
	Options string `json:"options,omitempty"`
	Line    int64  `json:"line"`
	// Records is how many records the lines up to that one have; 0 from releases that did not count them.
	Records int64 `json:"records,omitempty"`
	Done    bool  `json:"done"`
	// Newest is the latest modification time of any version of the input that was sent.
	Newest time.Time `json:"newest"`
}

func openCheckpoint(path string, m decode.Mapping, l decode.Limits, epoch string) (*checkpoint, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %+v%s", m, l, epoch))
	mapping := hex.EncodeToString(sum[:8])
	fresh := checkpointFile{Format: checkpointFormat, Mapping: mapping, Inputs: map[string]checkpointLine{}}
	c := &checkpoint{path: path, file: fresh}
	if path == "" {
		return c, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		c.file = checkpointFile{}
		err = json.Unmarshal(b, &c.file)
	}
	if err == nil && (c.file.Format < 1 || c.file.Format > checkpointFormat) {
		err = fmt.Errorf("format %d, this program reads up to %d", c.file.Format, checkpointFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("backfill checkpoint %s: %w (delete it to start over; records that are sent twice "+
			"do no harm)", path, err)
	}
	if c.file.Mapping != mapping || c.file.Inputs == nil {
		c.file = fresh
	}
	c.file.Format = checkpointFormat
	return c, nil
}

func checkpointKey(topic string, in *Input) string { return topic + " " + in.Name }

// progress is what a checkpoint knows of an input.
type progress struct {
	line    int64 // the last one that is acknowledged
	records int64 // up to there
	done    bool  // and it is the input's last
	// older: a version of the input with a later modification time was sent before this one.
	older bool
	hash  string
}

// sent returns how far the input has been sent, as it is now.
func (c *checkpoint) sent(ctx context.Context, topic string, in *Input) (progress, error) {
	if c.path == "" {
		return progress{}, nil
	}
	var p progress
	if in.Hash != nil {
		var err error
		if p.hash, err = in.Hash(ctx); err != nil {
			return p, fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	l, known := c.file.Inputs[checkpointKey(topic, in)]
	p.older = known && in.Modified.Before(maxTime(l.Newest, l.Modified))
	if l.Size == in.Size && l.Modified.Equal(in.Modified) && (l.SHA256 == p.hash || l.SHA256 == "") &&
		l.Options == in.Read.key() {
		p.line, p.records, p.done = l.Line, cmp.Or(l.Records, l.Line), l.Done
	}
	return p, nil
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// save notes that the input's records up to a line are acknowledged.
func (c *checkpoint) save(topic string, in *Input, at progress) error {
	if c.path == "" {
		return nil
	}
	key := checkpointKey(topic, in)
	old := c.file.Inputs[key]
	c.file.Inputs[key] = checkpointLine{Size: in.Size, Modified: in.Modified, SHA256: at.hash,
		Options: in.Read.key(), Line: at.line, Records: at.records, Done: at.done,
		Newest: maxTime(in.Modified, maxTime(old.Newest, old.Modified))}
	b, err := json.MarshalIndent(c.file, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("backfill checkpoint: %w", err)
	}
	tmp := c.path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("backfill checkpoint: %w", err)
	}
	if err := os.Rename(tmp, c.path); err != nil {
		return fmt.Errorf("backfill checkpoint: %w", err)
	}
	return nil
}
