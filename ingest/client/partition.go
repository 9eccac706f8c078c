package client

// Partition returns the partition that Kafka's default partitioner gives a record with this key:
// murmur2 of the key bytes, sign bit cleared, modulo the number of partitions. Java, librdkafka
// ("murmur2") and this function agree, so the records of a node land on its shard whichever of them
// produces.
func Partition(key []byte, partitions int) int {
	return int((murmur2(key) & 0x7fffffff) % uint32(partitions))
}

// murmur2 is Austin Appleby's 32-bit MurmurHash2 (public domain) with the seed that Kafka uses
// (org.apache.kafka.common.utils.Utils.murmur2).
func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(b[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}
