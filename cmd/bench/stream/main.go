// Command stream measures the streaming side on real servers: Apache Kafka and S3, as cmd/dev
// starts them. cmd/bench/stream/run starts both, calls this program and stops them:
//
//	cmd/bench/stream/run throughput   records from topic to committed Parquet, beside a bare consumer and other tools
//	cmd/bench/stream/run freshness    from a produced change to its embedding on the sink topic
//	cmd/bench/stream/run questions    filtered questions while attributes change
//	cmd/bench/stream/run million      three workers, one of them killed, on a large graph, with checks
//
// This needs no servers, and no Java:
//
//	make bench-load         the first load of a graph from files
//
// # What throughput means
//
// Every contender is a process of its own that reads the same topic from its start. It runs twice,
// on a short topic and on a long one. Its figure is the difference in time and in processor time,
// per record of difference, so start-up and the wait for a last flush fall out. Contenders
// alternate, and figures are medians over the rounds.
//
// Processor time is what the contender's process used, user and system. Broker and S3 server share
// the machine with it and are not counted. Where other work shares the cores, processor time says
// more than wall time.
//
// A contender is done when its rows are in the store. For giantstream that is when the commit log
// covers the topics; for others, when the footers of their Parquet objects add up to the topic's
// records.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// commands by name. Others start worker and bare as processes.
var commands = map[string]func(ctx context.Context, args []string) error{
	"throughput": throughput,
	"freshness":  freshness,
	"questions":  questions,
	"million":    million,
	"load":       load,
	"worker":     worker,
	"bare":       bare,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr,
			"usage: stream throughput|freshness|questions|million|load [flags]   (see cmd/bench/stream/run)")
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

// flags of a command that needs servers.
type flags struct {
	*flag.FlagSet
	dir  string
	seed uint64
}

func newFlags(command string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(command, flag.ExitOnError)}
	f.StringVar(&f.dir, "dir", ".dev/bench-stream/work", "`directory` for logs and state")
	f.Uint64Var(&f.seed, "seed", 1, "of the generated graph")
	return f
}

// open parses the flags and connects to the servers.
func (f *flags) open(args []string) (*place, error) {
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	return openPlace(f.dir)
}
