package wiring

import (
	"log/slog"

	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/taskqueue"
)

// TaskQueue returns where the coordinator of a pipeline's builds meets the processes with role build.
func TaskQueue(cfg *config.Config, c *client.Client, log *slog.Logger) taskqueue.Queue {
	return taskqueue.Queue{Client: c, Tasks: cfg.Pipeline + ".build-tasks", Reports: cfg.Pipeline + ".build-reports",
		Group: cfg.Group() + "-build", Log: log}
}
