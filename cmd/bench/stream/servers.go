package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"giantstream/ingest/broker"
	"giantstream/internal/freeport"
	"giantstream/sink/s3store/s3server"
)

// serversBucket is the bucket of the S3 server that servers starts.
const serversBucket = "giantstream"

// servers runs the embedded broker and an S3 server in a process of their own, so that their
// processor time is not that of the process that measures. It prints where they are as environment
// variables, and serves until its standard input ends.
func servers(ctx context.Context, args []string) error {
	fl := newFlags("servers")
	if err := fl.Parse(args); err != nil {
		return err
	}
	b, err := broker.Start(broker.Options{Dir: filepath.Join(fl.dir, "broker")})
	if err != nil {
		return err
	}
	listen, err := freeport.Addr(ctx)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return s3server.Serve(ctx, filepath.Join(fl.dir, "s3"), listen, serversBucket, func() {
			fmt.Printf("GIANTSTREAM_REAL_KAFKA=%s\nGIANTSTREAM_REAL_S3=http://%s\nGIANTSTREAM_REAL_S3_BUCKET=%s\n"+
				"AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\nAWS_REGION=%s\nready\n",
				strings.Join(b.Addrs(), ","), listen, serversBucket,
				s3server.AccessKey, s3server.SecretKey, s3server.Region)
		})
	})
	g.Go(func() error {
		_, err := io.Copy(io.Discard, os.Stdin)
		stop()
		return err
	})
	return errors.Join(g.Wait(), b.Close())
}

// startServers starts servers as a child of this process, which ends with it, and sets the
// environment to what openPlace reads. stop waits for their end.
func startServers(ctx context.Context, dir string) (stop func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "servers", "-dir", dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = in.Close() // which ends them
		_ = cmd.Wait() // whatever they say at their end
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			return stop, nil
		}
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			if err := os.Setenv(name, value); err != nil {
				stop()
				return nil, err
			}
		}
	}
	stop()
	return nil, errors.New("the servers have ended before they were ready")
}
