package graph

import (
	"hash/crc32"

	"giantstream/train/numeric"
)

// HashOf is the 64-bit hash of a node id that partitions and positions go by: FNV-1a, then the finalizer of
// SplitMix64. It is the hash that chooses hidden edges, too.
func HashOf(id string) uint64 { return numeric.HashString(id) }

// checkOf is a second hash of an id, CRC-32C. Ids that share both are refused.
func checkOf(id string) uint32 { return crc32.Checksum([]byte(id), checkTable) }

var checkTable = crc32.MakeTable(crc32.Castagnoli)

// PartitionOf returns which of 2^k partitions a hash is in: its upper k bits.
func PartitionOf(hash uint64, partitions int) int {
	hi := 0
	for n := partitions; n > 1; n /= 2 {
		hi++
	}
	return int(hash >> (64 - hi)) // a shift by 64 gives 0
}
