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
	peak      int64 // resident, MiB
}

// contender is a program that reads topics and stores their records.
type contender struct {
	name string
	// peer marks a tool of others. Its failures end only its own measurement.
	peer bool
	// command makes the process that reads topics from their start; run is a unique name.
	command func(ctx context.Context, run string, topics []string) (*exec.Cmd, error)
	// done waits until the store has all of the run's rows; nil for a process that then ends by
	// itself.
	done func(ctx context.Context, run string, rows int64) error
	// clean removes the leftovers of a run; may be nil.
	clean func(ctx context.Context, run string) error
}

const runTimeout = 5 * time.Minute

// measure runs a contender once. Its output goes to a log file in dir.
func (c *contender) measure(ctx context.Context, dir, run string, topics []string, rows int64) (u usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
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
	u.cpu, u.peak = p.cpu(), p.peak.Load()
	if err != nil {
		return u, fmt.Errorf("%s: %w; see %s", c.name, err, p.log.Name())
	}
	if c.clean != nil {
		return u, c.clean(ctx, run)
	}
	return u, nil
}

// figure is a contender's cost of records, without its start-up: records/s, CPU seconds per million
// records, peak MiB, and the load of the machine over the last minute of the long run.
type figure [4]float64

// marginal is the cost of the records that the long topic has more than the short one.
func marginal(short, long usage, more int64) figure {
	rate := 0.0
	if d := (long.wall - short.wall).Seconds(); d > 0 {
		rate = float64(more) / d
	}
	return figure{rate, (long.cpu - short.cpu).Seconds() / float64(more) * 1e6, float64(long.peak), loadAverage()}
}

func median(fs []figure) (m figure) {
	for i := range m {
		var v []float64
		for _, f := range fs {
			v = append(v, f[i])
		}
		slices.Sort(v)
		m[i] = (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return m
}

// loadAverage is the machine's load average of the last minute, to go with every figure; NaN where it is
// unknown.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(data), " ")
	n, perr := strconv.ParseFloat(first, 64)
	if err != nil || perr != nil {
		return math.NaN()
	}
	return n
}
