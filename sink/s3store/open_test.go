package s3store_test

import (
	"context"
	"strings"
	"testing"

	"giantstream/sink/s3store"
)

func TestAStoreThatCannotBeOpenedIsNamed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s3store.Open(ctx, "bucket", "catalog", s3store.Options{Endpoint: "http://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "s3://bucket/catalog") {
		t.Errorf("got %v", err)
	}
}
