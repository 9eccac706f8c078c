package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// commands by name. worker and bare are processes that the others start.
var commands = map[string]func(ctx context.Context, args []string) error{
	"throughput": throughput,
	"freshness":  freshness,
	"million":    million,
	"worker":     worker,
	"bare":       bare,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: stream throughput|freshness|million [flags]   (see cmd/bench/stream/run)")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := commands[os.Args[1]](ctx, os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "stream %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
