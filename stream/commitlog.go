package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"giantstream/sink"
)

// ErrLogGap: a manifest is missing between two that exist, or does not say
// what its key says. Somebody removed or changed objects of the commit log.
var ErrLogGap = errors.New("commit log is damaged")

// ShardPrefix is where everything of one shard lies in the store.
func ShardPrefix(shard int) string { return fmt.Sprintf("shards/%d/", shard) }

func manifestPrefix(shard int) string { return ShardPrefix(shard) + "manifests/" }

// ManifestKey is the object that commits sequence number seq of a shard.
func ManifestKey(shard int, seq int64) string {
	return fmt.Sprintf("%s%020d.json", manifestPrefix(shard), seq)
}

// manifestSeq is the inverse of ManifestKey.
func manifestSeq(shard int, key string) (int64, error) {
	name := strings.TrimPrefix(key, manifestPrefix(shard))
	seq, err := strconv.ParseInt(strings.TrimSuffix(name, ".json"), 10, 64)
	if err != nil || ManifestKey(shard, seq) != key {
		return 0, fmt.Errorf("%w: %q is no manifest's name", ErrLogGap, key)
	}
	return seq, nil
}

// Head returns the newest manifest of a shard, or nil when there is none.
// It needs O(log n) requests for a log of n manifests.
func Head(ctx context.Context, store sink.Store, shard int) (*Manifest, error) {
	seq, err := headSeq(ctx, store, shard, 0)
	if err != nil || seq == 0 {
		return nil, err
	}
	return readManifest(ctx, store, shard, seq)
}

// listRun is how many keys are walked in one go: what an S3 list request
// returns at most.
const listRun = 1000

// headSeq finds the newest sequence number after the given one, or returns
// it. It gallops: sequence numbers have no gaps and keys sort by them, so
// "is there any key after k" is monotone in k.
func headSeq(ctx context.Context, store sink.Store, shard int, after int64) (int64, error) {
	last, n, err := scanLog(ctx, store, shard, after, listRun)
	if err != nil || n < listRun {
		return last, err
	}
	low, step := last, int64(listRun) // there is a manifest at low
	high := int64(-1)                 // there is none after high
	for high < 0 || high-low > listRun {
		probe := low + step
		if high >= 0 {
			probe = low + (high-low)/2
		}
		found, n, err := scanLog(ctx, store, shard, probe, 1)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			high = probe
		} else {
			low, step = found, step*2
		}
	}
	last, _, err = scanLog(ctx, store, shard, low, 0)
	return last, err
}

// scanLog walks at most limit manifests (0: all) after a sequence number and
// returns the last one seen, or after, and how many there were.
func scanLog(ctx context.Context, store sink.Store, shard int, after int64, limit int) (last int64, n int, err error) {
	last = after
	for info, err := range store.List(ctx, manifestPrefix(shard), ManifestKey(shard, after)) {
		if err != nil {
			return 0, 0, fmt.Errorf("list the commit log of shard %d: %w", shard, err)
		}
		if last, err = manifestSeq(shard, info.Key); err != nil {
			return 0, 0, err
		}
		if n++; n == limit {
			break
		}
	}
	return last, n, nil
}

// Manifests yields the manifests of a shard after afterSeq in ascending
// order, up to the newest one. A gap ends it with ErrLogGap.
func Manifests(ctx context.Context, store sink.Store, shard int, afterSeq int64) iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		want := afterSeq
		for info, err := range store.List(ctx, manifestPrefix(shard), ManifestKey(shard, afterSeq)) {
			want++
			m, err := nextManifest(ctx, store, shard, want, info.Key, err)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func nextManifest(ctx context.Context, store sink.Store, shard int, want int64, key string, err error) (*Manifest, error) {
	if err != nil {
		return nil, fmt.Errorf("list the commit log of shard %d: %w", shard, err)
	}
	seq, err := manifestSeq(shard, key)
	if err != nil {
		return nil, err
	}
	if seq != want {
		return nil, fmt.Errorf("%w: shard %d has manifest %d but not %d", ErrLogGap, shard, seq, want)
	}
	return readManifest(ctx, store, shard, seq)
}

func readManifest(ctx context.Context, store sink.Store, shard int, seq int64) (*Manifest, error) {
	key := ManifestKey(shard, seq)
	data, err := sink.ReadAll(ctx, store, key)
	if err != nil {
		return nil, err
	}
	m, err := DecodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if m.Shard != shard || m.Seq != seq {
		return nil, fmt.Errorf("%w: %s holds shard %d, sequence %d", ErrLogGap, key, m.Shard, m.Seq)
	}
	return m, nil
}

// DecodeManifest reads a manifest and refuses what this version does not know.
func DecodeManifest(data []byte) (*Manifest, error) {
	var probe struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &probe); err != nil {
		return nil, fmt.Errorf("%w: manifest does not parse: %w", ErrLogGap, err)
	}
	if probe.Format != ManifestFormat {
		return nil, fmt.Errorf("manifest has format %d, this version reads %d: it was written by another release", probe.Format, ManifestFormat)
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("%w: manifest does not parse: %w", ErrLogGap, err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return &m, nil
}

// check verifies what every reader relies on.
func (m *Manifest) check() error {
	if m.Shard < 0 || m.Seq < 1 {
		return fmt.Errorf("%w: manifest of shard %d has sequence %d", ErrLogGap, m.Shard, m.Seq)
	}
	var total int64
	for _, o := range m.Objects {
		if !strings.HasPrefix(o.Key, ShardPrefix(m.Shard)) || o.Rows < 0 || o.Bytes < 0 {
			return fmt.Errorf("%w: manifest %d of shard %d names object %q with %d rows", ErrLogGap, m.Seq, m.Shard, o.Key, o.Rows)
		}
		total += o.Rows
	}
	if total != m.Rows {
		return fmt.Errorf("%w: manifest %d of shard %d counts %d rows, its objects %d", ErrLogGap, m.Seq, m.Shard, m.Rows, total)
	}
	for topic, next := range m.Next {
		if next < 0 {
			return fmt.Errorf("%w: manifest %d of shard %d has offset %d for topic %q", ErrLogGap, m.Seq, m.Shard, next, topic)
		}
	}
	return nil
}

func (m *Manifest) encode() ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest %d of shard %d: %w", m.Seq, m.Shard, err)
	}
	return append(data, '\n'), nil
}
