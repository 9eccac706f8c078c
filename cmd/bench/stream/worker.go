package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

// worker runs giantstream's service until the commit log covers the topics, as run --until-idle
// does before it builds a generation.
func worker(ctx context.Context, args []string) error {
	fl := flag.NewFlagSet("worker", flag.ExitOnError)
	file := fl.String("config", "", "configuration `file`")
	profile := fl.String("cpuprofile", "", "write a CPU profile to `file`")
	if err := fl.Parse(args); err != nil {
		return err
	}
	cfg, err := config.Load(*file, nil)
	if err != nil {
		return err
	}
	store, err := wiring.OpenStore(ctx, &cfg)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return stage.Profile(*profile, func() error {
		s, err := service.Start(ctx, service.Options{Config: &cfg, Store: store, Log: log})
		if err != nil {
			return err
		}
		return errors.Join(s.Drain(ctx), s.Close())
	})
}
