package cli

import (
	"testing"

	"giantstream/cmd/internal/cli/command"
	"giantstream/config"
)

// A run of a store alone listens where a service does if it is to answer, and nowhere else.
func TestARunThatAnswersListens(t *testing.T) {
	usual := config.Default().HTTP.Listen
	for roles, want := range map[string]string{"stream,refresh,embed": "", "stream,refresh,embed,serve": usual} {
		f := runFlags{roles: roles, pipeline: command.PipelineFlags{Store: t.TempDir()}}
		cfg, err := f.load()
		if err != nil {
			t.Fatal(err)
		}
		if cfg.HTTP.Listen != want {
			t.Errorf("--roles %s listens at %q, want %q", roles, cfg.HTTP.Listen, want)
		}
	}
}
