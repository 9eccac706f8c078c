package wiring

import (
	"fmt"
	"log/slog"
	"slices"

	"giantstream/config"
	"giantstream/ingest/external"
	"giantstream/stream/mutation"
	"giantstream/train/answer"
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
	return external.New(externalOptions(cfg, log))
}

func externalOptions(cfg *config.Config, log *slog.Logger) external.Options {
	e := &cfg.Ingest.External
	return external.Options{URL: e.URL, Model: e.Model, Dimensions: e.Dimensions, Key: string(e.APIKey),
		Batch: e.Batch, Rate: e.Rate, Timeout: e.Timeout, Log: log}
}

// questionsAtOnce bounds the requests at once for questions, each of which is of one text or a few.
const questionsAtOnce = 32

// TextModelOf returns the external model as it is asked about the texts of questions, nil if there is none. Its client
// is one of its own, so that no question stands behind the texts of nodes. inputs are those of the pipeline's identity.
func TextModelOf(cfg *config.Config, inputs []string, log *slog.Logger) (*answer.TextModel, error) {
	topic := cfg.ExternalVectors()
	at := slices.Index(inputs, topic)
	if topic == "" || at < 0 {
		return nil, nil
	}
	m := &answer.TextModel{View: external.Name, Input: int32(mutation.Further) + int32(at)}
	if cfg.Ingest.External.URL == "" {
		return m, nil
	}
	o := externalOptions(cfg, log)
	o.AtOnce = questionsAtOnce
	c, err := external.New(o)
	if err != nil {
		return nil, err
	}
	m.Ask = c.Ask
	return m, nil
}
