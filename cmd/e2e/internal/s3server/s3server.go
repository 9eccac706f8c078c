// Package s3server serves S3 on loopback from a directory, for development and tests: versitygw, of
// which there can be one per process.
package s3server

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// What a client signs with. It protects nothing: the server listens on loopback and holds test
// data.
const (
	AccessKey = "giantstream"
	SecretKey = "giantstream-dev"
	Region    = "us-east-1"
)

// Serve runs the server on the address until ctx ends, with the objects in dir. Once the bucket is
// there it calls ready.
func Serve(ctx context.Context, dir, listen, bucket string, ready func()) error {
	dir, err := filepath.Abs(dir) // the server compares its folders as they are written
	if err != nil {
		return err
	}
	objects, attributes := filepath.Join(dir, "objects"), filepath.Join(dir, "attributes")
	versions := filepath.Join(dir, "versions") // of buckets with versioning
	for _, d := range []string{objects, attributes, versions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	// Attributes in files of their own: not every file system has extended ones.
	sidecar, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	backend, err := posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: attributes,
		VersioningDir: versions})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- embedgw.RunVersityGW(ctx, &atomic{Backend: backend, seed: maphash.MakeSeed()}, &embedgw.Config{
			RootUserAccess: AccessKey, RootUserSecret: SecretKey, Region: Region,
			Ports: []string{listen}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000,
			Quiet: true,
		})
	}()
	if err := makeBucket(ctx, listen, bucket, done); err != nil {
		return err
	}
	ready()
	return <-done
}

// makeBucket waits for the server by asking it for a bucket.
func makeBucket(ctx context.Context, endpoint, bucket string, done <-chan error) error {
	client, err := minio.New(endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region, MaxRetries: 1})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
		resp, ok := errors.AsType[minio.ErrorResponse](err)
		if err == nil || ok && resp.Code == "BucketAlreadyOwnedByYou" {
			return nil
		}
		select {
		case err := <-done:
			return fmt.Errorf("the server has ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w", endpoint, err)
		case <-tick.C:
		}
	}
}
