package mutation

import "context"

// Source is the input topics of a pipeline, as far as their records are still there. Offsets are those of the brokers.
type Source interface {
	// FirstOffsets returns the offset of the first record that is there, by topic and partition, and EndOffsets the
	// offset after the last one that can be read.
	FirstOffsets(ctx context.Context, topics ...string) (map[string][]int64, error)
	EndOffsets(ctx context.Context, topics ...string) (map[string][]int64, error)
	// Range hands to each what the records of a stretch of a partition state, in their order. It returns how many
	// records it has read, and how many of them are dead letters.
	Range(ctx context.Context, topic string, partition int, from, to int64, each func(Mutation)) (
		records, refused int64, err error)
}
