package ingest

import "github.com/segmentio/kafka-go"

// KeyHeader of a copy (package repartition) holds the key of the original, where the copy's key is the id out of an
// object. The object may say more than the id: the far end of an edge, the item of an order.
const KeyHeader = "giantstream-key"

// OwnKey returns the key that producers gave a record or the original of a copy.
func OwnKey(m *kafka.Message) []byte {
	for _, h := range m.Headers {
		if h.Key == KeyHeader {
			return h.Value
		}
	}
	return m.Key
}
