package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/pipelinetest"
)

// testedFile is how the tests of a file went.
type testedFile struct {
	File  string                `json:"file"`
	Tests []pipelinetest.Result `json:"tests"`
}

// testReport is what 'giantstream test' prints as JSON.
type testReport struct {
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Files  []testedFile `json:"files"`
}

func testCommand(a *command.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Test a mapping: records in, rows, edges and dead letters out",
		Long: `Run tests of a pipeline's mapping. A file has a configuration and tests: records of
the nodes and the edges topic, and the nodes, edges and dead letters that they must
become (docs/format/tests.md). Nothing is started, sent or stored.

The exit code is 0 if all tests pass, 1 if one fails, 2 if a file cannot be used.`,
		Example: "  giantstream test pipeline.test.yaml\n  giantstream test tests/*.yaml --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report := testReport{}
			for _, name := range args {
				file, err := pipelinetest.Load(name)
				if err != nil {
					return command.UsageError(err)
				}
				results, err := pipelinetest.Run(cmd.Context(), file)
				if err != nil {
					return command.UsageError(fmt.Errorf("%s: %w", name, err))
				}
				report.Files = append(report.Files, testedFile{name, results})
				for i := range results {
					if results[i].Passed() {
						report.Passed++
					} else {
						report.Failed++
					}
				}
			}
			var err error
			if asJSON {
				err = command.WriteJSON(a.Out, report)
			} else {
				err = printTests(&command.Printer{Out: a.Out}, &report)
			}
			if err == nil && report.Failed > 0 {
				all := command.Plural(report.Passed+report.Failed, "test")
				err = fmt.Errorf("%s of %s failed", console.Count(report.Failed), all)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printTests prints a line per test and the differences of those that failed: - was expected, + was there.
func printTests(p *command.Printer, report *testReport) error {
	for _, f := range report.Files {
		p.Line("%s", console.Plain(f.File))
		for _, t := range f.Tests {
			if t.Passed() {
				p.Line("  ok    %s", console.Plain(t.Name))
				continue
			}
			p.Line("  FAIL  %s", console.Plain(t.Name))
			for _, d := range t.Differences {
				if d.Want != "" {
					p.Line("        - %s", console.Plain(d.Want))
				}
				if d.Got != "" {
					p.Line("        + %s", console.Plain(d.Got))
				}
			}
		}
	}
	if report.Failed > 0 {
		p.Line("- was expected, + was there")
	}
	p.Line("%s passed, %s failed", console.Count(report.Passed), console.Count(report.Failed))
	return p.Err
}
