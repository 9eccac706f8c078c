package client

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/segmentio/kafka-go"
)

// Fingerprint returns 16 hexadecimal digits that tell a record from another one at the same offset:
// the beginning of the SHA-256 of its producer's timestamp, its key and its value.
func Fingerprint(m kafka.Message) string {
	h := sha256.New()
	created := m.Time.UnixMilli()
	if c, ok := m.WriterData.(createTime); ok {
		created = int64(c)
	}
	var head [20]byte
	binary.BigEndian.PutUint64(head[:], uint64(created))
	binary.BigEndian.PutUint64(head[8:], uint64(len(m.Key)))
	if m.Key == nil {
		head[16] = 1
	}
	if m.Value == nil {
		head[17] = 1
	}
	h.Write(head[:])
	h.Write(m.Key)
	h.Write(m.Value)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// FingerprintAt returns the fingerprint of the record at an offset, "" if there is none there:
// compaction or retention have removed it, it is no record, or the topic ends before.
func (c *Client) FingerprintAt(ctx context.Context, topic string, partition int, offset int64) (string, error) {
	return retryUntilTimeout(ctx, func(ctx context.Context) (string, error) {
		got, err := c.Fetch(ctx, topic, partition, offset, 1, minReadPause)
		if errors.Is(err, ErrOffsetOutOfRange) {
			return "", nil
		}
		if err != nil || len(got.Records) == 0 || got.Records[0].Offset != offset {
			return "", err
		}
		return Fingerprint(got.Records[0]), nil
	})
}
