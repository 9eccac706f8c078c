package wiring

import (
	"fmt"
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
	if e.URL == "" {
		return nil, fmt.Errorf("ingest.external.url is missing: nodes have vectors of the model %q, and a worker with "+
			"role stream asks it for those of new texts", e.Model)
	}
	return external.New(external.Options{URL: e.URL, Model: e.Model, Dimensions: e.Dimensions, Key: string(e.APIKey),
		Batch: e.Batch, Rate: e.Rate, Timeout: e.Timeout, Log: log})
}
