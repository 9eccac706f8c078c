package icebergsink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/iceberg"
)

// places are iceberg.Places on the disk, so that a table of any size takes a bounded amount of memory. They are
// made anew by every process: there is no log, and nothing is synced.
type places struct {
	dir string
	db  *pebble.DB
}

var _ iceberg.Places = (*places)(nil)

const (
	cacheBytes    = 64 << 20
	memTableBytes = 16 << 20
)

func openPlaces() (*places, error) {
	dir, err := os.MkdirTemp("", "giantstream-iceberg-")
	if err != nil {
		return nil, fmt.Errorf("an index of the rows needs a temporary folder (TMPDIR): %w", err)
	}
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	db, err := pebble.Open(dir, &pebble.Options{Cache: cache, MemTableSize: memTableBytes, DisableWAL: true,
		Logger: quiet{}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open an index of the rows in %s: %w", dir, err), os.RemoveAll(dir))
	}
	return &places{dir: dir, db: db}, nil
}

// Close removes them.
func (p *places) Close() error { return errors.Join(p.db.Close(), os.RemoveAll(p.dir)) }

// key is the serial and the node.
func key(serial int64, node string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(serial)), node...)
}

const valueBytes = 4 + 4 + 8

func encode(p iceberg.Place) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, valueBytes), p.File)
	b = binary.LittleEndian.AppendUint32(b, p.Row)
	return binary.LittleEndian.AppendUint64(b, uint64(p.Version))
}

func decode(b []byte) (iceberg.Place, error) {
	if len(b) != valueBytes {
		return iceberg.Place{}, fmt.Errorf("the index of the rows is damaged: a value of %d bytes; start again", len(b))
	}
	return iceberg.Place{File: binary.LittleEndian.Uint32(b), Row: binary.LittleEndian.Uint32(b[4:]),
		Version: int64(binary.LittleEndian.Uint64(b[8:]))}, nil
}

// Get implements iceberg.Places.
func (p *places) Get(serial int64, node string) (at iceberg.Place, ok bool, err error) {
	value, closer, err := p.db.Get(key(serial, node))
	if errors.Is(err, pebble.ErrNotFound) {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	at, err = decode(value)
	return at, err == nil, errors.Join(err, closer.Close())
}

// Change implements iceberg.Places.
func (p *places) Change(serial int64, gone []string, set map[string]iceberg.Place) error {
	b := p.db.NewBatch()
	for _, node := range gone {
		if _, again := set[node]; again {
			continue
		}
		if err := b.Delete(key(serial, node), nil); err != nil {
			return err
		}
	}
	for node, at := range set {
		if err := b.Set(key(serial, node), encode(at), nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}

// Range implements iceberg.Places.
func (p *places) Range(serial int64, do func(string, iceberg.Place) bool) error {
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: key(serial, ""), UpperBound: key(serial+1, "")})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		at, err := decode(it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !do(string(it.Key()[8:]), at) {
			break
		}
	}
	return it.Close()
}

// Drop implements iceberg.Places.
func (p *places) Drop(serial int64) error {
	return p.db.DeleteRange(key(serial, ""), key(serial+1, ""), pebble.NoSync)
}

// quiet keeps the engine's messages out of the log.
type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
