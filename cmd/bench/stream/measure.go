package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what a process took.
type usage struct {
	wall, cpu time.Duration
	rss       int64 // peak, bytes
}

// contender is somebody who takes a topic somewhere.
type contender struct {
	name string
	// peer: another's tool, whose failures end its own measurement only.
	peer bool
	// command makes the process that reads topics from their start; run is
	// a name that no other run has had.
	command func(ctx context.Context, run string, topics []string) (*exec.Cmd, error)
	// done waits until the store has all of the run's rows; nil for a
	// process that ends by itself then.
	done func(ctx context.Context, run string, rows int64) error
	// clean removes what a run has left; may be nil.
	clean func(ctx context.Context, run string) error
}

// patience is how long a run may take.
const patience = 5 * time.Minute

// measure runs a contender once. Its output goes to a log file in dir.
func (c *contender) measure(ctx context.Context, dir, run string, topics []string, rows int64) (u usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd, err := c.command(ctx, run, topics)
	if err != nil {
		return u, err
	}
	began := time.Now()
	p, err := start(cmd, filepath.Join(dir, run+".log"))
	if err != nil {
		return u, err
	}
	if c.done == nil {
		<-p.ended
		err = p.err
	} else {
		err = p.during(ctx, func(ctx context.Context) error { return c.done(ctx, run, rows) })
	}
	u.wall = time.Since(began)
	p.stop()
	u.cpu, u.rss = p.cpu(), p.peak.Load()
	if err != nil {
		return u, fmt.Errorf("%s: %w; see %s", c.name, err, p.log.Name())
	}
	if c.clean != nil {
		return u, c.clean(ctx, run)
	}
	return u, nil
}

// figure is a contender's cost of records, without its start-up.
type figure struct {
	rate float64 // records/s
	cpu  float64 // CPU seconds per million records
	rss  int64
	load float64 // the machine's, over the last minute of the long run
}

// marginal is what the records took that the long topic has more than the short.
func marginal(short, long usage, more int64) figure {
	f := figure{cpu: (long.cpu - short.cpu).Seconds() / float64(more) * 1e6, rss: long.rss, load: load()}
	if d := (long.wall - short.wall).Seconds(); d > 0 {
		f.rate = float64(more) / d
	}
	return f
}

func median(fs []figure) figure {
	pick := func(get func(figure) float64) float64 {
		var v []float64
		for _, f := range fs {
			v = append(v, get(f))
		}
		slices.Sort(v)
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return figure{
		rate: pick(func(f figure) float64 { return f.rate }),
		cpu:  pick(func(f figure) float64 { return f.cpu }),
		rss:  int64(pick(func(f figure) float64 { return float64(f.rss) })),
		load: pick(func(f figure) float64 { return f.load }),
	}
}

// load is the machine's load average of the last minute, to go with every
// figure; NaN where it cannot be told.
func load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(data), " ")
	n, perr := strconv.ParseFloat(first, 64)
	if err != nil || perr != nil {
		return math.NaN()
	}
	return n
}
