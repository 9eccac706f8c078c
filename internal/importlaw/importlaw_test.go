package importlaw

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "giantstream"

// Libraries that not every package may link.
const (
	kafka   = "github.com/segmentio/kafka-go/..."
	parquet = "github.com/parquet-go/parquet-go/..."
	pebble  = "github.com/cockroachdb/pebble/v2/..."
	s3      = "github.com/minio/minio-go/v7/..."
	pgx     = "github.com/jackc/pgx/v5/..."
	milvus  = "github.com/milvus-io/..."
	iceberg = "github.com/apache/iceberg-go/... github.com/apache/arrow-go/v18/..."
	otel    = "go.opentelemetry.io/otel/..."
	otelSDK = "go.opentelemetry.io/otel/sdk/... go.opentelemetry.io/otel/exporters/..."
)

// law is the table. Linking is more than importing: it follows imports to their end. Test files
// are free.
var law = []rule{
	// The floors of the house, from the lowest.
	{packages: "internal/...", not: "cmd/... config/... ingest/... stream/... train/... featurize/... sink/...",
		because: "internal is below everything",
		except:  []string{"internal/graphdir -> featurize/sparse"}},
	{packages: "internal/tasks", not: "internal/... !internal/tasks",
		because: "the contract of engines is one that any package can keep"},
	{packages: "config/...", not: "cmd/... ingest/... stream/... train/... featurize/... sink/... internal/...",
		because: "config is the YAML file and nothing else",
		except:  []string{"config -> internal/suggest"}}, // a mistyped field is answered as a mistyped flag
	{packages: "sink/...", not: "cmd/... config/... ingest/... stream/... train/... featurize/...",
		because: "a store of objects and rows knows no graph"},
	{packages: "featurize/...", not: "cmd/... config/... ingest/... stream/... train/... sink/...",
		because: "features are functions of texts and links, wherever these are kept"},
	{packages: "train/...", not: "cmd/... config/... ingest/... stream/...",
		because: "training reads a cut in the store, whoever wrote it"},
	{packages: "stream/...", not: "cmd/... config/... ingest/... train/... featurize/...",
		because: "a shard gets its features through an interface and its input as mutations"},
	{packages: "ingest/...", not: "cmd/... config/... stream/... !stream/mutation train/... featurize/...",
		because: "input becomes mutations, and what applies them is not its concern"},

	// Libraries.
	{packages: "config/... sink/... featurize/... train/... stream/... internal/...", not: kafka,
		because: "only ingest and cmd talk to Kafka"},
	{packages: "config/... sink/... featurize/... train/... internal/...", not: pebble,
		because: "only shards keep a state on disk (ingest/broker borrows Pebble's file lock)"},
	{packages: "config/... featurize/... internal/...", not: parquet + " " + s3,
		because: "only what reads and writes the store knows its formats and servers"},
	{packages: "config/... sink/... !sink/iceberg featurize/... train/... stream/... internal/...", not: otel,
		because: "traces hang on hooks, which know no library (iceberg-go brings OpenTelemetry's)"},
	{packages: "ingest/...", not: otelSDK,
		because: "a library makes spans; where they go is for the program to say"},
	{packages: "config/... ingest/... stream/... train/... featurize/... internal/... sink/... " +
		"!sink/vectordb/pgvector/...", not: pgx,
		because: "PostgreSQL is one database of several"},
	{packages: "config/... ingest/... stream/... train/... featurize/... internal/... sink/... " +
		"!sink/vectordb/milvus/...", not: milvus,
		because: "Milvus is one database of several"},
	{packages: "cmd/giantstream cmd/internal/... !cmd/internal/icebergsink config/... ingest/... stream/... train/... " +
		"featurize/... internal/... sink/... !sink/iceberg", not: iceberg,
		because: "a client of Iceberg is large, and has a program of its own"},
	{packages: "sink/vectordb", not: "sink/vectordb/... !sink/vectordb",
		because: "what follows the topic knows no database"},
	{packages: "ingest/decode stream/mutation", not: pebble + " " + parquet + " " + s3 + " sink/...",
		because: "decoding a record needs no storage engine"},
	{packages: "stream/commitlog/... stream/publish stream/rowtable", not: pebble,
		because: "whoever reads the commit log needs no engine; only shards do"},
	{packages: "stream/shard/engine", not: "stream/... !stream/shard/engine sink/...",
		because: "the engine keeps keys and values; it knows no graph and no store"},
	{packages: "sink sink/lease sink/dirstore sink/s3store", not: parquet,
		because: "a store keeps bytes"},

	// The floors of train, from the lowest.
	{packages: "train", not: "train/... !train sink/...",
		because: "the package train is the vocabulary of its floors"},
	{packages: "train/numeric/...", not: "train/... !train/numeric/... featurize/... sink/...",
		because: "arithmetic knows no model"},
	{packages: "train/encoders/...", not: "train/objectives/... train/generation/...",
		because: "an encoder does not know what it is trained for"},
	{packages: "train/objectives/...", not: "train/generation/...",
		because: "an objective does not know the life of a generation"},

	// The floors of a build, from the lowest.
	{packages: "train/generation/build/sections train/generation/build/stages",
		not:     "train/generation/build/... !train/generation/build/sections !train/generation/build/stages",
		because: "how objects are laid out and how a build is divided is known before any stage"},
	{packages: "train/generation/build/work", not: "train/generation/build/graph " +
		"train/generation/build/vocabulary train/generation/build/labels train/generation/build/training " +
		"train/generation/build/embeddings train/generation/build",
		because: "a task does not know the stages"},
	{packages: "train/generation/build/graph",
		not: "train/generation/build/vocabulary train/generation/build/labels train/generation/build/training " +
			"train/generation/build/embeddings",
		because: "nodes and links are there before anything is learned of them"},
	{packages: "train/generation/build/vocabulary train/generation/build/labels",
		not:     "train/generation/build/training train/generation/build/embeddings",
		because: "features are made before the encoder"},
}

// rule says what packages must not link. Patterns are those of go list, relative to the module,
// and separated by spaces; one with a ! takes packages out again.
type rule struct {
	packages, not string
	because       string
	// except are single imports that the rule does not hold for (yet), "a -> b". One that the
	// rule no longer needs is reported, so that the list can only shrink.
	except []string
}

// imports maps each package to the packages that it imports.
type imports map[string][]string

// check returns what breaks the rules, and what in the rules themselves could never fail.
func check(rules []rule, graph imports) (faults []string) {
	for _, r := range rules {
		from, err := matching(r.packages, graph)
		if err != nil {
			faults = append(faults, err.Error())
		}
		not, err := matching(r.not, graph)
		if err != nil {
			faults = append(faults, err.Error())
		}
		unused := slices.Clone(r.except)
		for _, p := range from {
			path := graph.path(p, not, r.except, &unused)
			if path != nil {
				faults = append(faults, fmt.Sprintf("%s: %s", strings.Join(path, " -> "), r.because))
			}
		}
		for _, e := range unused {
			faults = append(faults, fmt.Sprintf("the exception %q is not needed any more: remove it", e))
		}
	}
	return faults
}

// path returns the shortest chain of imports from a package to one of not, nil without any. It
// follows no exception, but takes from unused those that lead to one of not.
func (graph imports) path(from string, not, except []string, unused *[]string) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		for _, q := range graph[p] {
			if arrow := short(p) + " -> " + short(q); slices.Contains(except, arrow) {
				if slices.Contains(not, q) {
					*unused = slices.DeleteFunc(*unused, func(e string) bool { return e == arrow })
				}
				continue
			}
			if _, seen := came[q]; seen {
				continue
			}
			came[q] = p
			if slices.Contains(not, q) {
				var path []string
				for ; q != ""; q = came[q] {
					path = append(path, short(q))
				}
				slices.Reverse(path)
				return path
			}
			queue = append(queue, q)
		}
	}
	return nil
}

// matching returns the packages of the graph that patterns name. A pattern without any is an
// error: a rule about nothing holds for ever.
func matching(patterns string, graph imports) (packages []string, err error) {
	for pattern := range strings.FieldsSeq(patterns) {
		name, out := strings.CutPrefix(pattern, "!")
		if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
			name = module + "/" + name
		}
		prefix, deep := strings.CutSuffix(name, "/...")
		match := func(p string) bool { return p == prefix || deep && strings.HasPrefix(p, prefix+"/") }
		if out {
			packages = slices.DeleteFunc(packages, match)
			continue
		}
		before := len(packages)
		for p := range graph {
			if match(p) {
				packages = append(packages, p)
			}
		}
		if len(packages) == before {
			err = fmt.Errorf("the pattern %q matches no package", pattern)
		}
	}
	slices.Sort(packages)
	return packages, err
}

func short(p string) string { return strings.TrimPrefix(p, module+"/") }

func TestLaw(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	graph := imports{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		graph[fields[0]] = fields[1:]
	}
	for _, fault := range check(law, graph) {
		t.Error(fault)
	}
}

// The checker itself, on a small graph: cmd -> ingest -> kafka, train -> sink -> kafka.
func TestCheck(t *testing.T) {
	const kafka = "example.com/kafka"
	graph := imports{
		"giantstream/cmd":       {"giantstream/ingest", "giantstream/train"},
		"giantstream/ingest":    {"giantstream/sink", kafka},
		"giantstream/train":     {"giantstream/sink"},
		"giantstream/train/fit": {"giantstream/train", "giantstream/cmd"},
		"giantstream/sink":      {kafka},
		kafka:                   nil,
	}
	for _, tt := range []struct {
		name string
		rule rule
		want string // of the faults, one each line
	}{
		{"holds", rule{packages: "sink", not: "cmd/... ingest train/..."}, ""},
		{"a direct import", rule{packages: "ingest", not: kafka, because: "why"}, "ingest -> example.com/kafka: why"},
		{"a link over two imports", rule{packages: "train", not: kafka, because: "why"},
			"train -> sink -> example.com/kafka: why"},
		{"each package of a pattern", rule{packages: "train/...", not: "sink", because: "why"},
			"train -> sink: why\ntrain/fit -> train -> sink: why"},
		{"a package taken out", rule{packages: "train/... !train/fit", not: "cmd"}, ""},
		{"an exception", rule{packages: "train", not: "sink", except: []string{"train -> sink"}}, ""},
		{"an exception on the way of another", rule{packages: "train/...", not: "sink", because: "why",
			except: []string{"train -> sink"}}, "train/fit -> cmd -> ingest -> sink: why"},
		{"an exception without need", rule{packages: "sink", not: "cmd", except: []string{"sink -> train"}},
			`the exception "sink -> train" is not needed any more: remove it`},
		{"no such package", rule{packages: "trian/...", not: "cmd"}, `the pattern "trian/..." matches no package`},
		{"nothing to refuse", rule{packages: "train", not: "example.com/kafak"},
			`the pattern "example.com/kafak" matches no package`},
	} {
		if got := strings.Join(check([]rule{tt.rule}, graph), "\n"); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
