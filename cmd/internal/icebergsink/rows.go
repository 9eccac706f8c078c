package icebergsink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/endpoint"
	"giantstream/cmd/internal/sinks"
	"giantstream/cmd/internal/wiring"
	"giantstream/sink/iceberg"
	"giantstream/stream/rowtable"
)

// pollsPerCommit is how often the log is asked for what is new between two commits; each time costs a request for
// every shard.
const pollsPerCommit = 12

var errDone = errors.New("done")

// followRows keeps the table of rows equal to the commit log.
func followRows(ctx context.Context, o sinks.RowsOptions) (err error) {
	store, err := wiring.OpenStore(ctx, o.Config)
	if err != nil {
		return err
	}
	places, err := openPlaces()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, places.Close()) }()
	opts, err := options(o.Config, o.Config.Sinks.Iceberg.Rows, places, o.Log)
	if err != nil {
		return err
	}
	at := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "giantstream_sink_manifest",
		Help: "The newest manifest of a shard whose rows were handed to the table."}, []string{"shard"})
	writes := sinks.NewWrites(at)
	f := rowtable.New(rowtable.Options{Store: store, Table: iceberg.NewRows(opts), Again: o.Again,
		Every: o.Config.Sinks.Iceberg.CommitInterval / pollsPerCommit, Watch: writes, Log: o.Log,
		Applied: func(shard int, seq int64, upserts, deletes int) {
			at.WithLabelValues(strconv.Itoa(shard)).Set(float64(seq))
			writes.Applied(upserts, deletes, 0)
		}})
	if err := f.Open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was stopped as it started
		}
		return err
	}
	o.Log.Info("the table of rows follows the commit log", "table", opts.Table, "store", o.Config.Store)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := f.Run(running, o.UntilCaughtUp); err != nil {
			return err
		}
		return errDone
	})
	if o.Config.HTTP.Listen != "" {
		handler := sinks.Handler(o.Config, writes.Registry, func() string { return writes.Failing(time.Now()) })
		group.Go(func() error {
			return endpoint.Serve(running, o.Config.HTTP, writes.Registry, o.Log, handler)
		})
	}
	err = group.Wait()
	if errors.Is(err, errDone) {
		return nil
	}
	if ctx.Err() == nil {
		return err
	}
	// What is lost here is read again, but it would be visible only then.
	last, done := context.WithTimeout(context.WithoutCancel(ctx), sinks.LastCommit)
	defer done()
	if err := f.Flush(last); err != nil {
		return fmt.Errorf("the last commit: %w", err)
	}
	return nil
}
