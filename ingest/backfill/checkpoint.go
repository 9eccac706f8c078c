package backfill

import (
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

// checkpoint remembers, per topic and input, up to which line records are
// acknowledged.
type checkpoint struct {
	path string // "" keeps nothing
	file checkpointFile
}

const checkpointFormat = 1

type checkpointFile struct {
	Format int `json:"format"`
	// Mapping is a hash of the mapping and the limits: with others, the
	// same files become other records.
	Mapping string                    `json:"mapping"`
	Inputs  map[string]checkpointLine `json:"inputs"`
}

// checkpointLine is worth something only for the same content, which size and
// modification time stand for.
type checkpointLine struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Line     int64     `json:"line"`
	Done     bool      `json:"done"`
}

func openCheckpoint(path string, m decode.Mapping, l decode.Limits) (*checkpoint, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %+v", m, l))
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
	if err == nil && c.file.Format != checkpointFormat {
		err = fmt.Errorf("format %d, this program reads %d", c.file.Format, checkpointFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("backfill checkpoint %s: %w (delete it to begin anew; records that are sent twice do no harm)", path, err)
	}
	if c.file.Mapping != mapping || c.file.Inputs == nil {
		c.file = fresh
	}
	return c, nil
}

func checkpointKey(topic string, in *Input) string { return topic + " " + in.Name }

// sent returns the last line of the input that is acknowledged, and whether
// that is all of it.
func (c *checkpoint) sent(topic string, in *Input) (line int64, done bool) {
	l := c.file.Inputs[checkpointKey(topic, in)]
	if l.Size != in.Size || !l.Modified.Equal(in.Modified) {
		return 0, false
	}
	return l.Line, l.Done
}

// save notes that the input's records up to line are acknowledged.
func (c *checkpoint) save(topic string, in *Input, line int64, done bool) error {
	c.file.Inputs[checkpointKey(topic, in)] = checkpointLine{Size: in.Size, Modified: in.Modified, Line: line, Done: done}
	if c.path == "" {
		return nil
	}
	b, err := json.MarshalIndent(c.file, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return fmt.Errorf("backfill checkpoint: %w", err)
	}
	tmp := c.path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return fmt.Errorf("backfill checkpoint: %w", err)
	}
	if err := os.Rename(tmp, c.path); err != nil {
		return fmt.Errorf("backfill checkpoint: %w", err)
	}
	return nil
}
