package s3store_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/s3store"
	"giantstream/sink/storetest"
)

// TestRealStore runs the conformance suite on the server that GIANTSTREAM_REAL_S3 names, with
// credentials from the usual AWS variables.
func TestRealStore(t *testing.T) {
	endpoint, bucket := os.Getenv("GIANTSTREAM_REAL_S3"), os.Getenv("GIANTSTREAM_REAL_S3_BUCKET")
	if endpoint == "" {
		t.Skip("needs an S3 server: make test-real")
	}
	run := time.Now().UnixNano() // the bucket outlives the test
	storetest.Run(t, func(t *testing.T) sink.Store {
		s, err := s3store.Open(t.Context(), bucket, fmt.Sprintf("test-%d/%d", run, stores.Add(1)),
			s3store.Options{Endpoint: endpoint, PathStyle: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
