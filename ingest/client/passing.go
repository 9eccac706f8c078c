package client

import (
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

// Pauses between attempts, doubled each time.
const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

// Passing reports whether an error can pass by itself: brokers that are away,
// leaders that move, networks. What a broker refuses for good, and what the
// caller has to mend, is not.
func Passing(err error) bool {
	var k kafka.Error
	if errors.As(err, &k) {
		// kafka-go calls it Unknown when a broker breaks off a request that was
		// spread over several.
		return k.Temporary() || errors.Is(k, kafka.Unknown)
	}
	return !errors.Is(err, ErrNoTopic) && !errors.Is(err, ErrPartitions) && !errors.Is(err, ErrOffsetOutOfRange)
}
