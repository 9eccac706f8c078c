package service

import (
	"os/exec"
	"testing"

	"giantstream/config"
)

// answersAreAsDescribed has Schemathesis make requests up from openapi.json, right and wrong ones, and compare the
// answers with what it says of them: status, headers, media type and body.
func answersAreAsDescribed(t *testing.T, cfg *config.Config) {
	t.Helper()
	t.Run("openapi", func(t *testing.T) {
		if testing.Short() {
			t.Skip("half a minute")
		}
		tool, err := exec.LookPath("schemathesis")
		if err != nil {
			t.Skip("pip install schemathesis")
		}
		checks := "not_a_server_error,status_code_conformance,content_type_conformance," +
			"response_headers_conformance,response_schema_conformance,unsupported_method"
		cmd := exec.CommandContext(t.Context(), tool, "run", "--max-examples", "25", "--seed", "1", "--no-color",
			"--phases", "coverage,fuzzing", "--continue-on-failure", "--checks", checks,
			"http://"+cfg.HTTP.Listen+"/openapi.json")
		cmd.Dir = t.TempDir() // it leaves what it has found there
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
