// Command s3 serves S3 on loopback from a directory, for development and tests, as a process of its
// own.
//
//	go -C cmd/e2e run ./s3 -dir DIR -listen 127.0.0.1:19000
//
// It makes the bucket, prints "ready" and serves until SIGINT or SIGTERM; with -attached also until standard input
// ends, as it does when the process that has started it is gone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"giantstream/cmd/e2e/internal/s3server"
)

func main() {
	dir := flag.String("dir", ".dev/s3", "`directory` that keeps the objects")
	listen := flag.String("listen", "127.0.0.1:19000", "`address` to serve on")
	bucket := flag.String("bucket", "giantstream", "bucket to make")
	attached := flag.Bool("attached", false, "serve no longer than standard input is open")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *attached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	err := s3server.Serve(ctx, *dir, *listen, *bucket, func() { fmt.Println("ready") })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}
