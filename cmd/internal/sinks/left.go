package sinks

import (
	"context"
	"errors"
	"log/slog"

	"giantstream/config"
	"giantstream/internal/ambient"
	"giantstream/stream/forget"
)

// Scan lets a scanner look into the tables of this kind of sink. It changes nothing, and a process that writes there
// goes on. A sink that cannot be asked is in the scanner's report.
func (k Kind) Scan(ctx context.Context, s *forget.Scanner, cfg *config.Config, log *slog.Logger,
	progress ambient.Progress) (err error) {
	kind := "table of " + k.Name
	x, err := k.Open(cfg, log)
	if err != nil {
		s.Unread(kind, err)
		return nil
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	return s.Tables(ctx, x, kind, k.Rid, progress)
}

// rid is Kind.Rid of a database that giantstream itself has a client of.
func rid(name string) string {
	return "let 'giantstream sink run " + name + " --until-caught-up' apply the deletions; what is left then goes " +
		"with 'giantstream sink refill " + name + "' and another run"
}
