package embedding_test

import (
	"testing"

	"giantstream/sink/embedding"
)

func BenchmarkNarrowInt8(b *testing.B) {
	r := unit(4, 256)[3]
	f := embedding.Format{Type: embedding.Int8}
	for b.Loop() {
		f.Narrow(r)
	}
}
