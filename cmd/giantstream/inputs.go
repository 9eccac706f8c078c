package main

import (
	"context"
	"fmt"
	"strings"

	"giantstream/config"
	"giantstream/ingest/backfill"
)

// openInputs finds the files or objects behind the patterns.
func openInputs(ctx context.Context, cfg *config.Config, patterns []string) ([]backfill.Input, error) {
	var inputs []backfill.Input
	for _, p := range patterns {
		found, err := openInput(ctx, cfg, p)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, nil
}

func openInput(ctx context.Context, cfg *config.Config, pattern string) ([]backfill.Input, error) {
	rest, isS3 := strings.CutPrefix(pattern, "s3://")
	if !isS3 {
		return backfill.Files(pattern)
	}
	bucket, glob, _ := strings.Cut(rest, "/")
	if bucket == "" || glob == "" {
		return nil, fmt.Errorf("%q: want s3://bucket/pattern", pattern)
	}
	at := *cfg
	at.Store = "s3://" + bucket
	store, err := openStore(ctx, &at)
	if err != nil {
		return nil, err
	}
	return backfill.Objects(ctx, store, glob)
}
