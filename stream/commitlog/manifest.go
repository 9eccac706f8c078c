package commitlog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/retry"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// ManifestFormat is the version of the manifest's JSON that is written. Readers know every version
// from 1 to this one, and refuse others. Version 2 added the identity of the inputs, the chain
// (Previous) and the checksum. Version 3 has the same fields; it keeps out programs that do not know that
// manifests may be removed behind a Boundary. Version 4 was groupManifestFormat. Version 5 names objects by their
// SHA-256, earlier ones by their CRC-32C. Version 6 says which table an object has rows of. Version 7 counts
// orders; it keeps out programs that would lose their table where they merge rows. Version 8 has the same fields; it
// keeps out programs that would lose the table of vectors, or the weights and kinds of links. Version 9 says which
// orders count no more. Version 10 counts vectors, and version 11 the rows that say what is known.
const ManifestFormat = 11

// removalManifestFormat is the first version whose programs note which merged objects they remove.
const removalManifestFormat = 5

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
	// Counted says, by topic, what became of the statements below Next. It is missing where none was
	// counted: releases before format 5 counted none.
	Counted map[string]Counted `json:"statements,omitempty"`
	// Objects hold the rows of this window, table by table, in the order of their keys within and across
	// the objects of a table.
	Objects []Object `json:"objects"`
	// Rows counts those of nodes.
	Rows int64 `json:"rows"`
	// Again counts those of them that say what is known: their nodes are encoded again for what they are ordered with.
	Again      int64 `json:"rows_again,omitempty"`
	Generation int64 `json:"generation"`
	// Nodes and Edges count the live facts in the shard's state after this window. Mirrored
	// assertions do not count.
	Nodes int64 `json:"nodes"`
	Edges int64 `json:"edges"`
	// Orders counts the orders that have lines, and Lines their lines, in the shard's state after this window.
	Orders int64 `json:"orders,omitempty"`
	Lines  int64 `json:"order_lines,omitempty"`
	// Vectors counts by name the vectors that are stated in the shard's state after this window, once for each input.
	Vectors map[string]int64 `json:"vectors,omitempty"`
	// OrderClock is the newest time of an order that a statement up to Next has, in microseconds since the Unix
	// epoch; 0 for none. OrderHorizon says which orders count no more. Neither decreases.
	OrderClock   int64        `json:"order_clock,omitempty"`
	OrderHorizon rows.Horizon `json:"order_horizon,omitempty"`
	Created      time.Time    `json:"created"`
	// Committed is the sum of Changes of this manifest and of all before it, so that rows are counted
	// without reading the log. It is missing where the log was begun in format 1.
	Committed *int64 `json:"rows_committed,omitempty"`
	// Previous is the Digest of manifest Seq-1, "" in the first manifest: the log is a chain.
	Previous string `json:"previous,omitempty"`

	digest string // of the object that this manifest was read from, or encoded to
}

// Digest is the SHA-256, in hexadecimal, of the manifest's object as it was read or encoded.
func (m *Manifest) Digest() string { return m.digest }

// Changes counts the rows of nodes that say something new.
func (m *Manifest) Changes() int64 { return m.Rows - m.Again }

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
	total := before + m.Changes()
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

// Counted says what became of the statements of one topic in one shard, from an offset up to the one that
// a manifest covers. Offsets and counts are committed together, so each record counts once whatever happens:
// Sum is how many records the topic had there.
type Counted struct {
	// From is the first offset that was counted.
	From int64 `json:"from"`
	mutation.Outcomes
	// Former counts what shards of another number read of the same input, before 'reshard'; nil for none.
	Former *mutation.Outcomes `json:"former,omitempty"`
}

// Gap is how many offsets below next had no record that was counted: those that the topic had lost, compacted
// or given to transactions. Below 0, records were counted twice.
func (c Counted) Gap(next int64) int64 { return next - c.From - c.Sum() }

// Total is what was counted with Former.
func (c Counted) Total() mutation.Outcomes {
	if c.Former == nil {
		return c.Outcomes
	}
	return c.Plus(*c.Former)
}

// Object names one Parquet object of rows.
type Object struct {
	// Table is the name of the rows' table, "" for nodes. Releases before format 6 knew nodes alone.
	Table string `json:"table,omitempty"`
	Key   string `json:"key"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	sink.Checksum
}

// RowsOf counts the rows of a table.
func (m *Manifest) RowsOf(table string) (n int64) {
	for _, o := range m.Objects {
		if o.Table == table {
			n += o.Rows
		}
	}
	return n
}

// Ref says what the object's bytes must be.
func (o Object) Ref() sink.Ref { return sink.Ref{Key: o.Key, Bytes: o.Bytes, Checksum: o.Checksum} }

// Decode decodes a manifest that was read from a place. It refuses what this version does not know.
func Decode(data []byte, at seal.Place) (*Manifest, error) {
	var probe struct {
		Format int `json:"format"`
	}
	body, sealed, err := seal.Open(data, at)
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
	if err := seal.DecodeStrict(body, &m); err != nil {
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

// check verifies what all readers rely on.
func (m *Manifest) check() error {
	if m.Shard < 0 || m.Seq < 1 {
		return fmt.Errorf("%w: manifest of shard %d has sequence %d", ErrDamaged, m.Shard, m.Seq)
	}
	if m.Format > 1 && (m.Previous == "") != (m.Seq == 1) {
		return fmt.Errorf("%w: manifest %d of shard %d names %q as its predecessor", ErrDamaged, m.Seq, m.Shard,
			m.Previous)
	}
	for _, o := range m.Objects {
		if !strings.HasPrefix(o.Key, shardPrefix(m.Shard)) || o.Rows < 0 || o.Bytes < 0 {
			return fmt.Errorf("%w: manifest %d of shard %d names object %q with %d rows",
				ErrDamaged, m.Seq, m.Shard, o.Key, o.Rows)
		}
	}
	if total := m.RowsOf(nodes); total != m.Rows {
		return fmt.Errorf("%w: manifest %d of shard %d counts %d rows, its objects %d", ErrDamaged, m.Seq, m.Shard,
			m.Rows, total)
	}
	if m.Again < 0 || m.Again > m.Rows {
		return fmt.Errorf("%w: manifest %d of shard %d has %d rows, and %d of them again", ErrDamaged, m.Seq, m.Shard,
			m.Rows, m.Again)
	}
	if err := checkTables(m.Objects); err != nil {
		return fmt.Errorf("%w: manifest %d of shard %d: %w", ErrDamaged, m.Seq, m.Shard, err)
	}
	if m.OrderHorizon < 0 || m.OrderHorizon.Passed(m.OrderClock) {
		return fmt.Errorf("%w: manifest %d of shard %d has the order clock %d, and the horizon %d", ErrDamaged, m.Seq,
			m.Shard, m.OrderClock, m.OrderHorizon)
	}
	for topic, next := range m.Next {
		if next < 0 {
			return fmt.Errorf("%w: manifest %d of shard %d has offset %d for topic %q",
				ErrDamaged, m.Seq, m.Shard, next, topic)
		}
	}
	return m.checkInputs()
}

// checkTables verifies that objects stand table by table.
func checkTables(objects []Object) error {
	done := map[string]bool{}
	for i, o := range objects {
		if i > 0 && o.Table != objects[i-1].Table {
			done[objects[i-1].Table] = true
		}
		if done[o.Table] {
			return fmt.Errorf("object %s of table %q stands among those of another table", o.Key, o.Table)
		}
	}
	return nil
}

// Encode returns the manifest's object in the store of a pipeline, by its id, or an error if the manifest says what no
// reader accepts.
func (m *Manifest) Encode(pipeline string) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := seal.JSON(m, seal.Place{Pipeline: pipeline, Key: ManifestKey(m.Shard, m.Seq)})
	if err != nil {
		return nil, fmt.Errorf("encode manifest %d of shard %d: %w", m.Seq, m.Shard, err)
	}
	m.digest = digestOf(data)
	return data, nil
}

// Input says which topic a shard reads under a name, and how the offsets of the commit log relate
// to those of the brokers. Only the topic that a manifest names may continue it: another topic of
// the same name has other records at the same offsets.
type Input struct {
	// ID is the id that the brokers gave the topic, "" where they give none.
	ID string `json:"id,omitempty"`
	// Partitions is how many the topic has. It equals the number of shards.
	Partitions int `json:"partitions"`
	// First is the offset at which the shard began to read. Records from there on were consumed.
	First int64 `json:"first"`
	// Base is what the offsets of the commit log are above those of the brokers. It is 0 until a
	// person accepts that the topic was created again: the offsets of the commit log continue, and
	// so every record of the new topic is later than every record of the old one.
	Base int64 `json:"base,omitempty"`
	// Last is the newest record that was consumed, nil before the first. If the topic has another
	// record at its offset, it is another topic, or it has forgotten records that it had. Where the
	// record is gone, nothing can be told.
	Last *mutation.Record `json:"last,omitempty"`
}

// Lost is a range of offsets, as the commit log counts them, whose records are gone: they were
// deleted from the topic before they were read, or before a lost state could be built from them
// again.
type Lost struct {
	Topic string `json:"topic"`
	From  int64  `json:"from"` // inclusive
	To    int64  `json:"to"`   // exclusive
	// Offsets is how many are lost in the range. It is less than To-From where AddLost has joined
	// ranges.
	Offsets int64     `json:"offsets"`
	Noticed time.Time `json:"noticed"`
}

// String names the range as people write it.
func (l Lost) String() string {
	if l.Offsets < l.To-l.From {
		return fmt.Sprintf("%s: %d of the offsets %d to %d", l.Topic, l.Offsets, l.From, l.To-1)
	}
	return fmt.Sprintf("%s: offsets %d to %d", l.Topic, l.From, l.To-1)
}

// ShardLost is what a shard has lost.
type ShardLost struct {
	Shard int `json:"shard"`
	Lost
}

// String names the records.
func (l ShardLost) String() string { return fmt.Sprintf("shard %d, %s", l.Shard, l.Lost) }

// ShardLosses returns the losses that the manifest names, which nobody has accepted.
func (m *Manifest) ShardLosses() (out []ShardLost) {
	for _, l := range m.Lost {
		out = append(out, ShardLost{m.Shard, l})
	}
	return out
}

// BrokerOffsets returns Next as the brokers count it.
func (m *Manifest) BrokerOffsets() map[string]int64 {
	next := maps.Clone(m.Next)
	for topic := range next {
		next[topic] = max(0, next[topic]-m.Inputs[topic].Base)
	}
	return next
}

// maxLost bounds the ranges that a manifest lists.
const maxLost = 100

// AddLost adds a range to a list. A range that the list has already changes nothing. Of a long list,
// the two oldest ranges of a topic are joined.
func AddLost(list []Lost, l Lost) []Lost {
	for i := range list {
		if have := &list[i]; have.Topic == l.Topic && have.From <= l.From && l.To <= have.To {
			return list
		}
	}
	out := append(slices.Clone(list), l)
	if len(out) <= maxLost {
		return out
	}
	first := map[string]int{}
	for i, one := range out {
		j, ok := first[one.Topic]
		if !ok {
			first[one.Topic] = i
			continue
		}
		joined := Lost{Topic: one.Topic, From: min(out[j].From, one.From), To: max(out[j].To, one.To),
			Offsets: out[j].Offsets + one.Offsets, Noticed: out[j].Noticed}
		out = append(out[:i:i], out[i+1:]...)
		out[j] = joined
		break
	}
	return out
}

// checkInputs verifies what readers rely on.
func (m *Manifest) checkInputs() error {
	for topic, in := range m.Inputs {
		if topic == "" || in.Partitions < 1 {
			return fmt.Errorf("%w: manifest %d of shard %d reads topic %q with %d partitions",
				ErrDamaged, m.Seq, m.Shard, topic, in.Partitions)
		}
	}
	for _, l := range m.Lost {
		if l.Topic == "" || l.From >= l.To || l.Offsets < 1 || l.Offsets > l.To-l.From {
			return fmt.Errorf("%w: manifest %d of shard %d says that %d offsets of %q from %d to %d are lost",
				ErrDamaged, m.Seq, m.Shard, l.Offsets, l.Topic, l.From, l.To)
		}
	}
	return nil
}

// ErrDamaged: the commit log is not what its writers left. A manifest is missing between two that
// exist, say, or an object does not hold what its key says.
const ErrDamaged = retry.FinalError("commit log is damaged")

// shardPrefix begins the keys of all objects of a shard.
func shardPrefix(shard int) string { return fmt.Sprintf("shards/%d/", shard) }

func manifestPrefix(shard int) string { return shardPrefix(shard) + "manifests/" }

// ManifestKey is the object that commits sequence number seq of a shard.
func ManifestKey(shard int, seq int64) string {
	return fmt.Sprintf("%s%020d.json", manifestPrefix(shard), seq)
}

// manifestSeq is the inverse of ManifestKey.
func manifestSeq(shard int, key string) (int64, error) {
	name := strings.TrimPrefix(key, manifestPrefix(shard))
	seq, err := strconv.ParseInt(strings.TrimSuffix(name, ".json"), 10, 64)
	if err != nil || ManifestKey(shard, seq) != key {
		return 0, fmt.Errorf("%w: %q is no manifest's name", ErrDamaged, key)
	}
	return seq, nil
}
