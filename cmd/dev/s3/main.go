// Command s3 serves S3 on loopback from a directory, for development and
// tests: versitygw, the gateway that the tests of sink/s3store run in
// their own process, here as a process of its own.
//
//	go run ./cmd/dev/s3 -dir .dev/s3 -listen 127.0.0.1:19000
//
// It makes the bucket, prints "ready" and serves until SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// What a client signs with. It protects nothing: the server listens on
// loopback and holds test data.
const (
	accessKey = "giantstream"
	secretKey = "giantstream-dev"
	region    = "us-east-1"
)

func main() {
	dir := flag.String("dir", ".dev/s3", "`directory` that keeps the objects")
	listen := flag.String("listen", "127.0.0.1:19000", "`address` to serve on")
	bucket := flag.String("bucket", "giantstream", "bucket to make")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *dir, *listen, *bucket)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

// serve runs the gateway until ctx ends.
func serve(ctx context.Context, dir, listen, bucket string) error {
	objects, attributes := filepath.Join(dir, "objects"), filepath.Join(dir, "attributes")
	for _, d := range []string{objects, attributes} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	// Attributes in files of their own: not every file system has extended ones.
	sidecar, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	backend, err := posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: attributes})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
			RootUserAccess: accessKey, RootUserSecret: secretKey, Region: region,
			Ports: []string{listen}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000,
			Quiet: true,
		})
	}()
	if err := makeBucket(ctx, listen, bucket, done); err != nil {
		return err
	}
	fmt.Println("ready")
	return <-done
}

// makeBucket waits for the server by asking it for a bucket.
func makeBucket(ctx context.Context, endpoint, bucket string, done <-chan error) error {
	client, err := minio.New(endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: region, MaxRetries: 1})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
		if resp, ok := errors.AsType[minio.ErrorResponse](err); err == nil || ok && resp.Code == "BucketAlreadyOwnedByYou" {
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
