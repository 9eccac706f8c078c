package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/internal/race"
	"giantstream/sink/dirstore"
	"giantstream/stream/commitlog"
)

// pipelineCommands work on a pipeline that exists. Each has arguments with which it gets as far as its store.
var pipelineCommands = map[string][]string{
	"build": nil, "build plan": nil, "build run": nil,
	"build stage": {"gather", "--partition", "0", "--generation", "1"},
	"fit":         nil, "train": nil, "embed": nil, "rebuild": nil,
	"evaluate": nil, "evaluate heads": nil, "evaluate matcher": nil, "evaluate orders": nil,
	"similar": {"p1"}, "goes-with": {"p1"}, "status": nil, "report": {"-o", "report.html"}, "verify": nil,
	"forget":           {"p1"},
	"override":         {"--node", `{"sku":"p1","name":"x"}`},
	"generations list": nil, "generations compare": {"1", "1"}, "generations pin": {"1"},
	"generations promote": {"1"}, "generations rollback": nil, "generations unpin": nil,
	"inspect batches": nil, "inspect embeddings": nil, "inspect generation": nil, "inspect node": {"p1"},
	"inspect tree": nil,
	"dlq list":     nil, "dlq replay": nil,
	"dlq dismiss": {"--reason", "nobody needs them"},
	"claim":       {"--from", "8a41c07be25d9f3c"},
	"export":      {"--as-of", "2024-01-01", "--generation", "none", "-o", "out"},
}

// otherCommands take a pipeline's flags as well, and why they are not among pipelineCommands.
var otherCommands = map[string]string{
	"run":         "commitlog.EnsureIdentity compares",
	"backfill":    "it sends to topics and opens no store",
	"preview":     "it reads files and opens no store",
	"reshard":     "reshard.Run compares two stores",
	"remap":       "it compares mappings itself",
	"config show": "it prints what others would use",
	"sink run":    "it reads the embeddings topic",
	"sink refill": "it reads the embeddings topic",
}

// foreignPipeline makes a store of a pipeline with no default in its mapping, and returns its folder.
func foreignPipeline(t *testing.T) string {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("items.csv", "sku,name,\"Price, EUR\",seen\np1,red shoe,12,1700000000\np2,blue shoe,13,1700000001\n"+
		"p3,green hat,14,1700000002\np4,black hat,15,1700000003\n")
	write("links.csv", "a,b,seen\np1,p2,1700000000\np3,p4,1700000001\np2,p1,1700000001\n")
	write("pipeline.yaml", `pipeline: shop
store: store
shards: 2
kafka:
  topics: {nodes: shop.items, edges: shop.links}
ingest:
  undirected: false
  nodes: {id: sku, text: [name, "Price, EUR"], event_time: seen}
  edges: {src: a, dst: b, event_time: seen}
train: {encoder: linear}
embedding: {dim: 4}
refresh: {min_nodes: 2}
http: {listen: ""}
`)
	giantstream(t, command.ExitOK, "run", "-c", "pipeline.yaml", "--store", "store", "--nodes", "items.csv",
		"--edges", "links.csv", "--until-idle")
	return filepath.Join(dir, "store")
}

// giantstream runs a command line that has an exit code, and returns what it prints.
func giantstream(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := Run(t.Context(), args, &out, &errs, nil); got != code {
		t.Fatalf("giantstream %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(),
			errs.String())
	}
	return out.String(), errs.String()
}

// A command that is given a store alone reads it as its pipeline does.
func TestAStoreAloneSaysHowItsRecordsAreRead(t *testing.T) {
	store := foreignPipeline(t)
	giantstream(t, command.ExitOK, "verify", "--store", store, "--against", "shop.items,shop.links")

	var hashes []string
	for _, from := range []string{"topics", "log"} {
		out, _ := giantstream(t, command.ExitOK, "export", "--store", store, "--as-of", "2024-01-01",
			"--from", from, "--generation", "none", "-o", from, "--json")
		var doc struct {
			Hash  string `json:"graph_hash"`
			Nodes int64  `json:"nodes"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Nodes != 4 || doc.Hash == "" {
			t.Fatalf("from %s: %v\n%s", from, err, out)
		}
		hashes = append(hashes, doc.Hash)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("the topics are read as %s, and the pipeline has committed %s", hashes[0], hashes[1])
	}

	out, _ := giantstream(t, command.ExitOK, "config", "show", "--store", store)
	for _, want := range []string{`ingest.nodes.text +name, "Price, EUR"`, "ingest.nodes.id +sku",
		"kafka.topics.nodes +shop.items", "ingest.undirected +false", "shards +2"} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("config show does not have %s:\n%s", want, out)
		}
	}
	// Without --text, --id and so on, the files of the next run are read as those of the first were.
	giantstream(t, command.ExitOK, "run", "--store", store, "--nodes", "items.csv", "--edges", "links.csv",
		"--until-idle")
}

// No command works on a store with a configuration that is not that of its pipeline.
func TestEachCommandRefusesAConfigurationOfAnotherPipeline(t *testing.T) {
	race.SkipComputing(t)
	store := foreignPipeline(t)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := strings.TrimPrefix(c.CommandPath(), "giantstream ")
		if c.Flags().Lookup("store") == nil || otherCommands[path] != "" {
			return
		}
		args, known := pipelineCommands[path]
		if !known {
			t.Errorf("%q reads a store, and this test does not know with which arguments", path)
			return
		}
		args = append(strings.Fields(path), args...)
		for contradiction, says := range map[string]string{
			"ingest.nodes.text=title":    `ingest.nodes.text was "name, \"Price, EUR\"" and is "title"`,
			"kafka.topics.nodes=others":  `kafka.topics.nodes was "shop.items" and is "others"`,
			"ingest.undirected=true":     "undirected is false there and true here",
			"shards=3":                   "it has 2 shards, not 3",
			"pipeline=another":           `it is named "shop", not "another"`,
			"ingest.edges.mode=replace":  `ingest.edges.mode was "add" and is "replace"`,
			"ingest.nodes.text=name,EUR": `and is "name, EUR"`,
		} {
			for _, given := range [][]string{{"--store", store}, {"-c", "pipeline.yaml", "--store", store}} {
				_, errs := giantstream(t, command.ExitFailed, append(append(args, given...), "--set", contradiction)...)
				if errs = strings.ReplaceAll(errs, `\\`, `\`); !strings.Contains(errs, says) {
					t.Errorf("%s with --set %s does not say %s:\n%s", path, contradiction, says, errs)
				}
			}
		}
	}
	walk(Commands())
}

// A store of an older release does not have its mapping: what needs it asks for the configuration.
func TestAnOldStoreDoesNotSayHowItsRecordsAreRead(t *testing.T) {
	store := foreignPipeline(t)
	objects, err := dirstore.Open(store)
	if err != nil {
		t.Fatal(err)
	}
	id, err := commitlog.LoadIdentity(t.Context(), objects)
	if err != nil {
		t.Fatal(err)
	}
	// The id is in the manifests of this release.
	old := fmt.Sprintf(`{"format": 1, "name": "shop", "shards": 2, "undirected": false, "id": %q}`, id.ID)
	if err := os.WriteFile(filepath.Join(store, "pipeline.json"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--against", "shop.items,shop.links"},
		{"export", "--as-of", "2024-01-01", "--generation", "none", "-o", "old"},
		{"override", "--node", `{"sku":"p1","name":"x"}`},
		{"dlq", "replay"},
	} {
		_, errs := giantstream(t, command.ExitUsage, append(args, "--store", store)...)
		if !strings.Contains(errs, "does not say how records are read") {
			t.Errorf("%s: %s", args[0], errs)
		}
		giantstream(t, command.ExitOK, append(args, "-c", "pipeline.yaml", "--store", store)...)
	}
}
