package commitlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// ManifestFormat is the version of the manifest's JSON that is written. Readers know every version
// from 1 to this one, and refuse others. Version 2 added the identity of the inputs, the chain
// (Previous) and the checksum. Version 3 has the same fields; it keeps out programs that do not know that
// manifests may be removed behind a Boundary.
const ManifestFormat = boundaryManifestFormat

// boundaryManifestFormat is the first version whose readers know boundaries.
const boundaryManifestFormat = 3

// Manifest is one entry of a shard's commit log, created once under shards/<p>/manifests/<seq, 20
// digits>.json. It is the truth about what has been consumed and written; Kafka's committed offsets
// are a hint. Format page: docs/format/manifest.md.
type Manifest struct {
	Format int   `json:"format"`
	Shard  int   `json:"shard"`
	Seq    int64 `json:"seq"` // 1, 2, 3, … without gaps
	// Writer names the session that won this sequence number.
	Writer string `json:"writer"`
	// Next holds, per input topic, the offset of the first record that this manifest does not
	// cover, in the partition numbered like the shard.
	Next map[string]int64 `json:"next_offsets"`
	// Inputs says which topics Next is about. Manifests of format 1 do not have it.
	Inputs map[string]Input `json:"inputs,omitempty"`
	// Lost holds the losses of this shard that nobody has accepted yet.
	Lost []Lost `json:"lost,omitempty"`
	// Objects hold the rows of this window, in node_id order within and across objects.
	Objects    []Object `json:"objects"`
	Rows       int64    `json:"rows"`
	Generation int64    `json:"generation"`
	// Nodes and Edges count the live facts in the shard's state after this window. Mirrored
	// assertions do not count.
	Nodes   int64     `json:"nodes"`
	Edges   int64     `json:"edges"`
	Created time.Time `json:"created"`
	// Committed is the sum of Rows of this manifest and of all before it, so that rows are counted without
	// reading the log. It is missing where the log was begun in format 1.
	Committed *int64 `json:"rows_committed,omitempty"`
	// Previous is the Digest of manifest Seq-1, "" in the first manifest: the log is a chain.
	Previous string `json:"previous,omitempty"`

	digest string // of the object that this manifest was read from, or encoded to
}

// Digest is the SHA-256, in hexadecimal, of the manifest's object as it was read or encoded.
func (m *Manifest) Digest() string { return m.digest }

// Follow makes the manifest the successor of prev, nil for the first: it sets what depends on prev, once
// the number of rows is known.
func (m *Manifest) Follow(prev *Manifest) {
	m.Previous, m.Committed = "", nil
	before := int64(0)
	if prev != nil {
		m.Previous = prev.digest
		if prev.Committed == nil {
			return
		}
		before = *prev.Committed
	}
	total := before + m.Rows
	m.Committed = &total
}

// follows compares the manifest with what it says of its predecessor.
func (m *Manifest) follows(prev *Manifest) error {
	switch {
	case m.Format == 1 || m.Previous == prev.digest:
		return nil
	default:
		return fmt.Errorf("%w: manifest %d of shard %d was written after a manifest %d with the digest %.12s…, "+
			"the one in the store has %.12s…", ErrDamaged, m.Seq, m.Shard, prev.Seq, m.Previous, prev.digest)
	}
}

// Object names one Parquet object of rows.
type Object struct {
	Key    string `json:"key"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

// Ref says what the object's bytes must be.
func (o Object) Ref() sink.Ref { return sink.Ref{Key: o.Key, Bytes: o.Bytes, CRC32C: o.CRC32C} }

// Decode decodes a manifest. It refuses what this version does not know.
func Decode(data []byte) (*Manifest, error) {
	var probe struct {
		Format int `json:"format"`
	}
	body, sealed, err := seal.Open(data)
	if err != nil {
		return nil, fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
	}
	if err := json.Unmarshal(body, &probe); err != nil {
		return nil, fmt.Errorf("%w: manifest does not parse: %w", ErrDamaged, err)
	}
	switch {
	case probe.Format == groupManifestFormat:
		return nil, fmt.Errorf("manifest of format %d was %w", probe.Format, ErrGroupCommit)
	case probe.Format < 1 || probe.Format > ManifestFormat:
		return nil, fmt.Errorf("manifest has format %d, this version reads 1 to %d: it was written by another release",
			probe.Format, ManifestFormat)
	}
	var m Manifest
	if err := decodeStrict(body, &m); err != nil {
		return nil, fmt.Errorf("%w: manifest does not parse: %w", ErrDamaged, err)
	}
	if probe.Format > 1 && !sealed {
		return nil, fmt.Errorf("%w: manifest %d of shard %d has no checksum", ErrDamaged, m.Seq, m.Shard)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.digest = digestOf(data)
	return &m, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// decodeStrict refuses fields that v does not have.
func decodeStrict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// decodeSealed checks the checksum of a document that has one, and refuses fields that v does not have.
func decodeSealed(data []byte, v any) (sealed bool, err error) {
	body, sealed, err := seal.Open(data)
	if err == nil {
		err = decodeStrict(body, v)
	}
	return sealed, err
}

// check verifies what all readers rely on.
func (m *Manifest) check() error {
	if m.Shard < 0 || m.Seq < 1 {
		return fmt.Errorf("%w: manifest of shard %d has sequence %d", ErrDamaged, m.Shard, m.Seq)
	}
	if m.Format > 1 && (m.Previous == "") != (m.Seq == 1) {
		return fmt.Errorf("%w: manifest %d of shard %d names %q as its predecessor", ErrDamaged, m.Seq, m.Shard,
			m.Previous)
	}
	var total int64
	for _, o := range m.Objects {
		if !strings.HasPrefix(o.Key, shardPrefix(m.Shard)) || o.Rows < 0 || o.Bytes < 0 {
			return fmt.Errorf("%w: manifest %d of shard %d names object %q with %d rows",
				ErrDamaged, m.Seq, m.Shard, o.Key, o.Rows)
		}
		total += o.Rows
	}
	if total != m.Rows {
		return fmt.Errorf("%w: manifest %d of shard %d counts %d rows, its objects %d", ErrDamaged, m.Seq, m.Shard,
			m.Rows, total)
	}
	for topic, next := range m.Next {
		if next < 0 {
			return fmt.Errorf("%w: manifest %d of shard %d has offset %d for topic %q",
				ErrDamaged, m.Seq, m.Shard, next, topic)
		}
	}
	return m.checkInputs()
}

// Encode returns the manifest's object, or an error if the manifest says what no reader accepts.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := seal.JSON(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest %d of shard %d: %w", m.Seq, m.Shard, err)
	}
	m.digest = digestOf(data)
	return data, nil
}
