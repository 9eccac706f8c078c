package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/minio/minio-go/v7"

	"giantstream/internal/retry"
	"giantstream/sink"
)

var _ sink.Replacer = (*Store)(nil)

// Replace implements sink.Replacer by a PUT with If-Match and the tag of the version that holds old.
func (s *Store) Replace(ctx context.Context, key string, old, data []byte) error {
	pause := retry.Backoff{Min: conflictPause}
	for attempt := 0; ; attempt++ {
		err := s.replace(ctx, key, old, data)
		again := errors.Is(err, sink.ErrChanged) || status(err) == http.StatusConflict
		if errors.Is(err, sink.ErrChanged) {
			// The tag may belong to this call's own write, if its answer was lost. Then the object holds data.
			stored, readErr := sink.ReadAll(ctx, s, key)
			if readErr != nil {
				return readErr
			}
			if done, err := sink.CompareStored(key, stored, old, data); done || err != nil {
				return err
			}
		}
		if !again || attempt == conflictRetries {
			return err
		}
		if err := pause.Wait(ctx); err != nil {
			return s.wrap("replace", key, err)
		}
	}
}

func (s *Store) replace(ctx context.Context, key string, old, data []byte) error {
	stored, version, err := s.fetch(ctx, key, math.MaxInt64)
	if err != nil {
		return err
	}
	if done, err := sink.CompareStored(key, stored, old, data); done || err != nil {
		return err
	}
	opts := minio.PutObjectOptions{DisableMultipart: true}
	opts.SetMatchETag(version.etag)
	_, err = s.core.Client.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(data), int64(len(data)), opts)
	switch status(err) {
	case http.StatusPreconditionFailed:
		return &sink.Error{Op: "replace", Key: key, Err: fmt.Errorf("%w (%w)", sink.ErrChanged, err)}
	case http.StatusNotImplemented:
		return &sink.Error{Op: "replace", Key: key, Err: fmt.Errorf("%w (%w)", sink.ErrUnsupported, err)}
	}
	return s.wrap("replace", key, err)
}
