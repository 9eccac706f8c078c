package commitlog

import (
	"fmt"
	"strconv"
	"strings"

	"giantstream/internal/retry"
)

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
