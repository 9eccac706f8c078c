package evaluate

import (
	"bytes"
	"strings"
	"testing"

	"giantstream/cmd/internal/cli/command"
)

// What cannot be evaluated, or would be without a word, is refused before a store is opened.
func TestEvaluateRefusesBeforeItReads(t *testing.T) {
	for args, want := range map[string]string{
		"--splits -3":                   "--splits is -3; it must be 1 or more",
		"--splits 0":                    "--splits is 0",
		"--holdout NaN":                 "--holdout is NaN; it must be from 0 to below 0.9",
		"--holdout 0.9":                 "--holdout is 0.9",
		"--class brand --src a":         "--class, --src: these are about files",
		"--label brand --encoders lsa":  "--label: these are about files",
		"matcher --hide NaN":            "--hide must lie between 0 and 1",
		"orders --newest NaN":           "--newest is NaN",
		"--encoders lsa,bag,lsa":        "--encoders lsa,bag,lsa names one twice",
		"--ablation --encoders lsa":     "leave out --encoders",
		"--nodes n.jsonl --class brand": "leave out --store",
	} {
		t.Run(args, func(t *testing.T) {
			var errs bytes.Buffer
			a := &command.App{Out: &bytes.Buffer{}, Err: &errs}
			code := a.Execute(t.Context(), Command(a), append(strings.Fields(args), "--store", t.TempDir()))
			if code != 2 || !strings.Contains(errs.String(), want) {
				t.Errorf("exit code %d, want 2; %s", code, errs.String())
			}
		})
	}
}
