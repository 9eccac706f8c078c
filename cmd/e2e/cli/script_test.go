// Package cli_test types what users type, and compares what is printed with scripts.
package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli"
	"giantstream/cmd/internal/cli/sinkprocess"
	"giantstream/cmd/internal/sinks"
	"giantstream/config"
)

var update = flag.Bool("update", false, "rewrite the golden files inside testdata/script/*.txtar")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"giantstream": func() { os.Exit(cli.Main(nil)) },
		// As cmd/giantstream-iceberg, without what it links.
		"giantstream-iceberg": func() {
			os.Exit(sinkprocess.Main(sinks.Kind{Name: "iceberg", Title: "a table of Apache Iceberg", Field: "sinks.iceberg.uri",
				Rows: func(context.Context, sinks.RowsOptions) error { return nil }}))
		},
	})
}

// TestScripts runs the sessions in testdata/script: what a user types, and what is printed. $CORPUS
// has good and bad configurations, $CATALOGS exports as shops write them. Beside the commands of
// testscript the sessions have:
//
//	exits CODE giantstream ARGS…   runs a command and wants that exit code
//	empty DIR                      wants an empty directory
//	graph SIZE                     writes nodes.jsonl and edges.jsonl
//	masked FILE                    writes what the last command printed to FILE, with # for what
//	                               differs between runs and machines
//
// With -short, as under the race detector, there are only those whose commands do several things at once.
func TestScripts(t *testing.T) {
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir, files = "", []string{"testdata/script/run.txtar", "testdata/script/build.txtar"}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			corpus, err := filepath.Abs("../../../config/testdata")
			if err != nil {
				return err
			}
			catalogs, err := filepath.Abs("testdata/catalogs")
			if err != nil {
				return err
			}
			env.Setenv("CORPUS", corpus)
			env.Setenv("CATALOGS", catalogs)
			env.Setenv("NO_COLOR", "1")
			return os.WriteFile(filepath.Join(env.WorkDir, "example.yaml"), config.Example(), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "empty": empty, "graph": graph,
			"masked": masked},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS…]")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func empty(ts *testscript.TestScript, _ bool, args []string) {
	found, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) > 0 {
		ts.Fatalf("%s holds %v", args[0], found)
	}
}

// graph writes a contextual stochastic block model: nodes write in the words of their topic, their
// class, and link mostly within it.
func graph(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.Atoi(args[0])
	ts.Check(err)
	const topics = 4
	const epoch = 1_700_000_000
	random := rand.New(rand.NewPCG(1, 1))
	var nodes, edges bytes.Buffer
	line := func(out *bytes.Buffer, v any) { ts.Check(json.NewEncoder(out).Encode(v)) }
	for i := range size {
		words := make([]string, 10)
		for k := range words {
			words[k] = fmt.Sprintf("topic%dword%d", i%topics, random.IntN(20))
		}
		line(&nodes, map[string]any{"id": fmt.Sprintf("n%03d", i), "text": strings.Join(words, " "),
			"label": fmt.Sprint("topic", i%topics), "at": epoch + i})
		for range 3 {
			j := (i + topics*(1+random.IntN(size/topics-1))) % size
			line(&edges,
				map[string]any{"src": fmt.Sprintf("n%03d", i), "dst": fmt.Sprintf("n%03d", j), "at": epoch + i})
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("nodes.jsonl"), nodes.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("edges.jsonl"), edges.Bytes(), 0o600))
}

// masks are what differs between runs (times, windows) and between machines (floats, and so sizes).
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[0-9.Z]*`), "#time"},
	{regexp.MustCompile(`\b[0-9.,]+ ?(B|KB|MB|KiB|MiB)\b`), "#bytes"},
	{regexp.MustCompile(`-?\b\d+(\.\d+)?(e-?\d+)? ?(µs|ms|s)\b`), "#s"},
	{regexp.MustCompile(`-?\b\d+\.\d+(e-?\d+)?\b`), "#.#"},
	{regexp.MustCompile(`\b[0-9,]+ weights`), "# weights"},
	{regexp.MustCompile(`classes by \w+`), "classes by #"}, // the best head
	// A node has a row in each window that changes it or its edges; a slow machine makes more windows.
	{regexp.MustCompile(`\b\d+ rows changed`), "# rows changed"},
	{regexp.MustCompile(`(\S) {2,}`), "$1  "}, // columns are as wide as their values
}

func masked(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "$WORK")
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// The help of every command is golden, and shows how the command is used.
func TestHelp(t *testing.T) {
	script, err := os.ReadFile("testdata/script/help.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		golden := "exec " + c.CommandPath() + " --help\n"
		if !bytes.Contains(script, []byte(golden)) {
			t.Errorf("help.txtar lacks: %s", golden)
		}
		if c.HasParent() && !strings.HasPrefix(c.Example, "  "+c.CommandPath()) && c.Name() != "exit-codes" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(cli.Commands())
}
