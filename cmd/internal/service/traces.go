package service

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/telemetry"
)

// startTraces begins to send traces, if they are asked for. Without a collector, or with one that is not understood,
// the pipeline does its work all the same.
func (s *Service) startTraces(ctx context.Context, to sdktrace.SpanExporter) {
	var err error
	s.traces, err = telemetry.Start(ctx, telemetry.Options{Ratio: s.cfg.Telemetry.Traces.Ratio,
		Version: buildinfo.Read().Version, Pipeline: s.cfg.Pipeline, Instance: writerName(), Log: s.log, Exporter: to})
	if err != nil {
		s.log.Error("no traces are sent", "error", err)
	}
}

// traceShard follows records of a shard that this process opens.
func (s *Service) traceShard(shard int) *telemetry.Shard {
	topic := ""
	if s.roles.Embed {
		topic = s.topics.Embeddings
	}
	return s.traces.Shard(shard, topic)
}
