package wiring

import (
	"log/slog"

	"giantstream/config"
	"giantstream/ingest/external"
)

// ExternalOf returns a client of the external model, nil if there is none.
func ExternalOf(cfg *config.Config, log *slog.Logger) (*external.Client, error) {
	e := &cfg.Ingest.External
	if e.Model == "" {
		return nil, nil
	}
	return external.New(external.Options{URL: e.URL, Model: e.Model, Dimensions: e.Dimensions, Key: string(e.APIKey),
		Batch: e.Batch, Rate: e.Rate, Timeout: e.Timeout, Log: log})
}
