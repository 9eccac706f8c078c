package command

import (
	"context"
	"os"

	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
)

// IngestApart sends files through a pipeline with a temporary store, so that data is
// evaluated as it would be ingested.
func (a *App) IngestApart(ctx context.Context, inputs *InputFlags) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "giantstream-evaluate-*"); err != nil {
		return "", err
	}
	flags := PipelineFlags{Store: dir}
	cfg, err := flags.Load()
	if err != nil {
		return dir, err
	}
	inputs.Apply(cfg)
	files, err := inputs.Open(ctx, cfg)
	if err != nil {
		return dir, err
	}
	mapped, err := inputs.CheckMapping(ctx, cfg, files)
	if err != nil {
		return dir, err
	}
	w, err := a.OpenWorkplace(ctx, cfg, "")
	if err != nil {
		return dir, err
	}
	WarnOfMapping(w.Log, mapped)
	s, err := w.StartService(ctx, service.AllRoles())
	if err != nil {
		return dir, err
	}
	if _, err = wiring.Backfill(ctx, cfg, s.Client(), files, w.Progress); err == nil {
		err = s.Drain(ctx)
	}
	w.Progress.Done()
	return dir, CloseService(s, err)
}
