package s3store

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"giantstream/sink"
)

var _ sink.Versioned = (*Store)(nil)

// Versions implements sink.Versioned. A server that knows no versions has none.
func (s *Store) Versions(ctx context.Context) iter.Seq2[sink.Version, error] {
	return func(yield func(sink.Version, error) bool) {
		ctx, cancel := context.WithCancel(ctx) // ends the listing when the caller has enough
		defer cancel()
		opts := minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true, WithVersions: true}
		for o := range s.core.Client.ListObjectsIter(ctx, s.bucket, opts) {
			switch {
			case status(o.Err) == http.StatusNotImplemented:
				return
			case o.Err != nil:
				yield(sink.Version{}, s.wrap("list versions of", "", o.Err))
				return
			case o.IsLatest || o.IsDeleteMarker:
				continue
			}
			key := strings.TrimPrefix(o.Key, s.prefix)
			v := sink.Version{Info: sink.Info{Key: key, Size: o.Size, Modified: o.LastModified}, ID: o.VersionID}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// OpenVersion implements sink.Versioned.
func (s *Store) OpenVersion(ctx context.Context, v sink.Version) (sink.Object, error) {
	opts := minio.StatObjectOptions{VersionID: v.ID}
	info, err := s.core.StatObject(ctx, s.bucket, s.prefix+v.Key, opts)
	if err != nil {
		return nil, s.wrap("open", v.Key, err)
	}
	return &object{store: s, ctx: ctx, key: v.Key, size: info.Size, etag: info.ETag, version: v.ID}, nil
}
