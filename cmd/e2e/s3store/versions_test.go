package s3store_test

import (
	"maps"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"giantstream/sink"
	"giantstream/sink/s3store"
)

// A bucket with versioning keeps what was replaced and what was deleted, and a store below another prefix does not show
// there.
func TestVersions(t *testing.T) {
	client, err := minio.New(endpoint, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""),
		Region: region})
	if err != nil {
		t.Fatal(err)
	}
	const versioned = "versioned"
	if err := client.MakeBucket(t.Context(), versioned, minio.MakeBucketOptions{Region: region}); err != nil {
		t.Fatal(err)
	}
	if err := client.EnableVersioning(t.Context(), versioned); err != nil {
		t.Fatal(err)
	}
	put := func(s sink.Store, key, value string) {
		t.Helper()
		if err := sink.PutBytes(t.Context(), s, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(bucket, prefix string) *s3store.Store {
		t.Helper()
		s, err := s3store.Open(t.Context(), bucket, prefix, options())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, other, plain := in(versioned, "a"), in(versioned, "b"), in(bucket, "unversioned")
	for _, store := range []sink.Store{s, other, plain} {
		put(store, "replaced", "one")
		put(store, "replaced", "two")
		put(store, "deleted", "three")
		put(store, "kept", "four")
		if err := store.Delete(t.Context(), "deleted"); err != nil {
			t.Fatal(err)
		}
	}
	old := map[string]string{}
	for v, err := range s.Versions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.OpenVersion(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, o.Size())
		if _, err := o.ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		old[v.Key] += string(data)
	}
	if !maps.Equal(old, map[string]string{"replaced": "one", "deleted": "three"}) {
		t.Errorf("older versions: %v", old)
	}
	for v, err := range plain.Versions(t.Context()) {
		t.Errorf("a bucket without versioning has %v, %v", v, err)
	}
}
