package s3store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"giantstream/internal/retry"
	"giantstream/sink"
)

// Store is a sink.Store in a bucket, below a prefix.
type Store struct {
	sink.Membership
	core   minio.Core
	bucket string
	prefix string // "" or ending in a slash
}

var (
	_ sink.Store   = (*Store)(nil)
	_ sink.Fetcher = (*Store)(nil)
)

// Open connects to the bucket and checks that it is there. prefix is "" or a path within the
// bucket.
func Open(ctx context.Context, bucket, prefix string, opts Options) (*Store, error) {
	prefix = strings.Trim(prefix, "/")
	if prefix != "" {
		if err := sink.CheckKey(prefix); err != nil {
			return nil, fmt.Errorf("open s3://%s/%s: %w", bucket, prefix, err)
		}
		prefix += "/"
	}
	client, err := opts.client()
	if err != nil {
		return nil, fmt.Errorf("open s3://%s/%s: %w", bucket, prefix, err)
	}
	s := &Store{core: minio.Core{Client: client}, bucket: bucket, prefix: prefix}
	exists, err := client.BucketExists(ctx, bucket)
	if err != nil {
		return nil, s.wrap("open", s.URL(), err)
	}
	if !exists {
		return nil, &sink.Error{Op: "open", Key: s.URL(), Err: fmt.Errorf("bucket %q: %w", bucket, sink.ErrNotFound),
			Hint: "create the bucket, or check the endpoint and region"}
	}
	return s, nil
}

// URL returns s3://bucket/prefix.
func (s *Store) URL() string {
	return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/")
}

// partBytes is the size from which the client sends objects in parts.
const partBytes = 16 << 20

// Put implements sink.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := sink.CheckKey(key); err != nil {
		return s.wrap("put", key, err)
	}
	var err error
	if sum, ok := r.(sink.Summed); ok && size < partBytes {
		_, err = s.core.PutObject(ctx, s.bucket, s.prefix+key, sum.SectionReader, size,
			"", hex.EncodeToString(sum.SHA256[:]),
			minio.PutObjectOptions{DisableContentSha256: true}) // not once more
	} else {
		_, err = s.core.Client.PutObject(ctx, s.bucket, s.prefix+key, r, size, minio.PutObjectOptions{})
	}
	return s.wrap("put", key, err)
}

// A 409 says that another conditional request was in flight; S3 asks the client to retry. The other
// request ends after a moment, so few attempts suffice.
const (
	conflictRetries = 6
	conflictPause   = 50 * time.Millisecond // doubles with each attempt
)

// Create implements sink.Store.
func (s *Store) Create(ctx context.Context, key string, data []byte) error {
	if err := sink.CheckKey(key); err != nil {
		return s.wrap("create", key, err)
	}
	opts := minio.PutObjectOptions{DisableMultipart: true}
	opts.SetMatchETagExcept("*")
	pause := retry.Backoff{Min: conflictPause}
	for attempt := 0; ; attempt++ {
		_, err := s.core.Client.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(data), int64(len(data)), opts)
		switch status(err) {
		case http.StatusPreconditionFailed:
			return sink.ConfirmCreate(ctx, s, key, data)
		case http.StatusConflict:
			if attempt == conflictRetries {
				return s.wrap("create", key, err)
			}
			if err := pause.Wait(ctx); err != nil {
				return s.wrap("create", key, err)
			}
		default:
			return s.wrap("create", key, err)
		}
	}
}

// Open implements sink.Store.
func (s *Store) Open(ctx context.Context, key string) (sink.Object, error) {
	if err := sink.CheckKey(key); err != nil {
		return nil, s.wrap("open", key, err)
	}
	info, err := s.core.StatObject(ctx, s.bucket, s.prefix+key, minio.StatObjectOptions{})
	if err != nil {
		return nil, s.wrap("open", key, err)
	}
	return &object{store: s, ctx: ctx, key: key, size: info.Size, etag: info.ETag}, nil
}

// Fetch implements sink.Fetcher.
func (s *Store) Fetch(ctx context.Context, key string, most int64) ([]byte, error) {
	data, _, err := s.fetch(ctx, key, most)
	return data, err
}

// fetch is Fetch, and returns the version that it has read from, too. If the body breaks off, the rest is read from
// that version.
func (s *Store) fetch(ctx context.Context, key string, most int64) ([]byte, *object, error) {
	if err := sink.CheckKey(key); err != nil {
		return nil, nil, s.wrap("open", key, err)
	}
	body, info, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, nil, s.wrap("open", key, err)
	}
	defer body.Close() //nolint:errcheck // read only; what was read counts
	if info.Size < 0 {
		return nil, nil, s.wrap("read", key, errors.New("the server does not say how long the object is"))
	}
	o := &object{store: s, ctx: ctx, key: key, size: info.Size, etag: info.ETag}
	data := make([]byte, min(info.Size, most))
	n, err := io.ReadFull(body, data)
	if err != nil && ctx.Err() == nil {
		_, err = o.ReadAt(data[n:], int64(n))
	}
	if err != nil {
		return nil, nil, s.wrap("read", key, err)
	}
	return data, o, nil
}

// List implements sink.Store; the server sorts and cuts.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	return func(yield func(sink.Info, error) bool) {
		if err := sink.CheckPrefix(prefix); err != nil {
			yield(sink.Info{}, s.wrap("list", prefix, err))
			return
		}
		opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
		if after != "" {
			opts.StartAfter = s.prefix + after
		}
		pause := retry.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}
		for torn := 0; ; {
			last, err := s.list(ctx, opts, yield)
			if last > opts.StartAfter {
				opts.StartAfter, torn = last, 0
			}
			if err == nil || errors.Is(err, errEnough) {
				return
			}
			if torn++; torn == listTries || !isTorn(err) || pause.Wait(ctx) != nil {
				yield(sink.Info{}, s.wrap("list", prefix, err))
				return
			}
		}
	}
}

// listTries is how often a page of a list that breaks off is asked for.
const listTries = 5

// isTorn reports whether the answer to a request broke off. minio-go repeats requests that fail, which are errors of a
// status or of a URL, but not those whose answer it cannot read to the end.
func isTorn(err error) bool {
	_, failed := errors.AsType[*url.Error](err)
	return status(err) == 0 && !failed
}

var errEnough = errors.New("the caller has seen enough")

// list yields until the list ends, and returns the last key in it.
func (s *Store) list(ctx context.Context, opts minio.ListObjectsOptions, yield func(sink.Info, error) bool) (
	last string, err error) {
	for info := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
		if info.Err != nil {
			return last, info.Err
		}
		last = info.Key
		key := strings.TrimPrefix(info.Key, s.prefix)
		if sink.CheckKey(key) != nil {
			continue // not ours: folder markers and the like
		}
		if !yield(sink.Info{Key: key, Size: info.Size, Modified: info.LastModified}, nil) {
			return last, errEnough
		}
	}
	return last, ctx.Err() // minio-go may just stop
}

// Delete implements sink.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := sink.CheckKey(key); err != nil {
		return s.wrap("delete", key, err)
	}
	err := s.wrap("delete", key, s.core.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{}))
	if errors.Is(err, sink.ErrNotFound) {
		return nil
	}
	return err
}

// status returns the HTTP status of an S3 error, 0 for others.
func status(err error) int {
	if resp, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return resp.StatusCode
	}
	return 0
}

// wrap makes a sink.Error of the server's answer.
func (s *Store) wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	e := &sink.Error{Op: op, Key: key, Err: err}
	resp, _ := errors.AsType[minio.ErrorResponse](err)
	switch {
	case resp.Code == minio.NoSuchBucket:
		e.Hint = fmt.Sprintf("bucket %q does not exist: create it, or check the endpoint and region", s.bucket)
	case resp.StatusCode == http.StatusNotFound, resp.Code == minio.NoSuchKey:
		e.Err = fmt.Errorf("%w (%w)", sink.ErrNotFound, err)
	case resp.StatusCode == http.StatusPreconditionFailed && op == "read":
		e.Err = fmt.Errorf("%w (%w)", sink.ErrChanged, err)
	case resp.StatusCode == http.StatusNotImplemented && op == "create":
		e.Err = fmt.Errorf("%w (%w)", sink.ErrNoConditions, err)
	case resp.Code == "ExpiredToken", resp.Code == "InvalidToken", resp.Code == "TokenRefreshRequired",
		resp.StatusCode == http.StatusBadRequest && resp.Code == resp.Message: // without a body, as to HEAD
		e.Hint = "temporary credentials may have expired: those of a role or a profile's file are read again, those " +
			"of the environment and the configuration are not"
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusUnauthorized:
		e.Hint = "check the credentials (configuration, AWS_ACCESS_KEY_ID, AWS_PROFILE or the machine's role) and " +
			"their policy: GetObject, PutObject, DeleteObject, ListBucket"
	}
	return e
}
