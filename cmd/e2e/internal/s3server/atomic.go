package s3server

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3response"
)

// atomic makes the objects of a backend change as those of S3 do: all at once. versitygw stores an object's
// attributes, its ETag among them, in a file beside it, just before the object itself. A reader between the two
// would get the new ETag with the old bytes, and a compare-and-swap with that ETag would overwrite what it never saw.
type atomic struct {
	backend.Backend
	locks [256]sync.RWMutex
	seed  maphash.Seed
}

func (a *atomic) lock(bucket, key *string) *sync.RWMutex {
	var h maphash.Hash
	h.SetSeed(a.seed)
	for _, s := range []*string{bucket, key} {
		if s != nil {
			_, _ = h.WriteString(*s) // cannot fail
		}
		_ = h.WriteByte('/')
	}
	return &a.locks[h.Sum64()%uint64(len(a.locks))]
}

func (a *atomic) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	l := a.lock(in.Bucket, in.Key)
	l.Lock()
	defer l.Unlock()
	return a.Backend.PutObject(ctx, in)
}

func (a *atomic) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (
	s3response.CompleteMultipartUploadResult, string, error) {
	l := a.lock(in.Bucket, in.Key)
	l.Lock()
	defer l.Unlock()
	return a.Backend.CompleteMultipartUpload(ctx, in)
}

func (a *atomic) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	l := a.lock(in.Bucket, in.Key)
	l.Lock()
	defer l.Unlock()
	return a.Backend.DeleteObject(ctx, in)
}

// GetObject answers with a file that is open, which later changes do not touch.
func (a *atomic) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	l := a.lock(in.Bucket, in.Key)
	l.RLock()
	defer l.RUnlock()
	return a.Backend.GetObject(ctx, in)
}

func (a *atomic) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	l := a.lock(in.Bucket, in.Key)
	l.RLock()
	defer l.RUnlock()
	return a.Backend.HeadObject(ctx, in)
}
