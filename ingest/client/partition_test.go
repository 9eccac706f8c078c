package client_test

import (
	"testing"

	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
)

// The hashes are those of Kafka's own test (UtilsTest.testMurmur2).
var javaHashes = map[string]int32{
	"21":                         -973932308,
	"foobar":                     -790332482,
	"a-little-bit-long-string":   -985981536,
	"a-little-bit-longer-string": -1486304829,
	"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
	"abc": 479470107,
}

func TestPartitionIsThatOfKafkasDefaultPartitioner(t *testing.T) {
	for key, hash := range javaHashes {
		for _, n := range []int{1, 2, 8, 12, 4096} {
			if got, want := client.Partition([]byte(key), n), int(hash&0x7fffffff)%n; got != want {
				t.Errorf("%q of %d: %d, want %d", key, n, got, want)
			}
		}
	}
}

func FuzzPartition(f *testing.F) {
	f.Add([]byte("node-1"), 8)
	f.Add([]byte{0xff, 0x80, 0x7f}, 3)
	f.Fuzz(func(t *testing.T, key []byte, n int) {
		n = 1 + (n&0x7fffffff)%1000
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		want := kafka.Murmur2Balancer{Consistent: true}.Balance(kafka.Message{Key: key}, all...)
		if got := client.Partition(key, n); got != want {
			t.Errorf("%x of %d: %d, kafka-go says %d", key, n, got, want)
		}
	})
}
