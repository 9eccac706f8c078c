package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"runtime/pprof"

	"giantstream/cmd/internal/service"
	"giantstream/config"
	"giantstream/sink/s3store"
	"giantstream/sink/stores"
)

// worker is giantstream's service until the commit log covers the topics:
// what run --until-idle does before it builds a generation.
func worker(ctx context.Context, args []string) (err error) {
	fl := flag.NewFlagSet("worker", flag.ExitOnError)
	file := fl.String("config", "", "configuration `file`")
	profile := fl.String("cpuprofile", "", "write a CPU profile to `file`")
	if err := fl.Parse(args); err != nil {
		return err
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return err
	}
	store, err := stores.Open(ctx, cfg.Store, stores.Options{S3: s3store.Options{Endpoint: cfg.S3.Endpoint, PathStyle: cfg.S3.PathStyle}})
	if err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() { pprof.StopCPUProfile(); err = errors.Join(err, f.Close()) }()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := service.Start(ctx, service.Options{Config: &cfg, Store: store, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Drain(ctx)
}
