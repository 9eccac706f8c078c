package s3store

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"

	"giantstream/sink"
)

// bodyRetries is how often a GET is repeated after its body broke off: minio-go retries requests,
// but leaves the body to its caller.
const bodyRetries = 3

// object is one version of an object, read by ranged GETs.
type object struct {
	store *Store
	ctx   context.Context // of Open: reads end with it
	key   string
	size  int64
	etag  string
	// version is the id of a version that is not current, "" for the current one.
	version string
}

func (o *object) Size() int64  { return o.size }
func (o *object) Close() error { return nil }

// ReadAt implements io.ReaderAt with one GET.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &sink.Error{Op: "read", Key: o.key, Err: errors.New("negative offset")}
	}
	want := int(min(int64(len(p)), max(o.size-off, 0)))
	n := 0
	for attempt := 0; n < want; attempt++ {
		got, err := o.get(p[n:want], off+int64(n))
		n += got
		if err != nil && (attempt == bodyRetries || !brokeOff(err) || o.ctx.Err() != nil) {
			return n, o.store.wrap("read", o.key, err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// get fills p from the object at off.
func (o *object) get(p []byte, off int64) (n int, err error) {
	opts := minio.GetObjectOptions{VersionID: o.version}
	if err := opts.SetRange(off, off+int64(len(p))-1); err != nil {
		return 0, err
	}
	if err := opts.SetMatchETag(o.etag); err != nil {
		return 0, err
	}
	body, info, header, err := o.store.core.GetObject(o.ctx, o.store.bucket, o.store.prefix+o.key, opts)
	if err != nil {
		return 0, err
	}
	defer body.Close() //nolint:errcheck // read only; what was read counts
	// Not every server heeds If-Match, or keeps tag and bytes together.
	_, total, _ := strings.Cut(header.Get("Content-Range"), "/")
	if info.ETag != o.etag || total != strconv.FormatInt(o.size, 10) {
		return 0, sink.ErrChanged
	}
	return io.ReadFull(body, p)
}

// brokeOff reports whether the body broke off. An answer with a status was already retried by
// minio-go if it can be.
func brokeOff(err error) bool {
	return status(err) == 0 && !errors.Is(err, sink.ErrChanged)
}
