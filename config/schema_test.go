package config_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"giantstream/config"
)

// check returns what of a value the schema does not allow. It knows the keywords that Schema uses, and fails
// for another.
func check(t *testing.T, schema map[string]any, value any, path string) (faults []string) {
	t.Helper()
	fault := func(format string, args ...any) { faults = append(faults, path+": "+fmt.Sprintf(format, args...)) }
	for keyword, want := range schema {
		switch keyword {
		case "$schema", "title", "description", "x-effect", "default", "deprecated":
		case "type":
			kinds, several := want.([]any)
			if !several {
				kinds = []any{want}
			}
			if !slices.ContainsFunc(kinds, func(kind any) bool { return isKind(value, kind.(string)) }) {
				fault("is %T, want %v", value, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), value) {
				fault("is %v, want one of %v", value, want)
			}
		case "const":
			if value != want {
				fault("is %v, want %v", value, want)
			}
		case "minimum":
			if n, ok := value.(float64); ok && n < want.(float64) {
				fault("is %v, want at least %v", n, want)
			}
		case "pattern":
			if text, ok := value.(string); ok && !regexp.MustCompile(want.(string)).MatchString(text) {
				fault("is %q, want %s", text, want)
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), func(one any) bool {
				return len(check(t, one.(map[string]any), value, path)) == 0
			}) {
				fault("is %v, which fits nothing of %v", value, want)
			}
		case "items":
			if list, ok := value.([]any); ok {
				for _, one := range list {
					faults = append(faults, check(t, want.(map[string]any), one, path+"[]")...)
				}
			}
		case "properties", "additionalProperties":
			if fields, ok := value.(map[string]any); ok && keyword == "properties" {
				for name, field := range fields {
					if inner, known := want.(map[string]any)[name]; known {
						faults = append(faults, check(t, inner.(map[string]any), field, path+"."+name)...)
					} else if schema["additionalProperties"] == false {
						faults = append(faults, path+"."+name+": unknown")
					}
				}
			}
		default:
			t.Fatalf("the test does not know %q", keyword)
		}
	}
	return faults
}

func isKind(value any, kind string) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// readAsJSON reads YAML as an editor's validator sees it.
func readAsJSON(t *testing.T, data []byte) (value any) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(strings.TrimSpace(string(asJSON))) == 0 {
		return nil
	}
	if err := json.Unmarshal(asJSON, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	data, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// Every configuration in the repository that Parse accepts fits the schema.
func TestSchemaAcceptsEveryConfigurationOfTheRepository(t *testing.T) {
	schema := readSchema(t)
	seen := 0
	everySet := func(string) (string, bool) { return "secret", true }
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := config.Parse(data, everySet); err != nil {
			return nil //nolint:nilerr // no configuration, or a bad one
		}
		seen++
		for _, fault := range check(t, schema, readAsJSON(t, data), "") {
			t.Errorf("%s: %s", path, fault)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 8 { // the example, six good ones, and that of docs
		t.Errorf("only %d configurations", seen)
	}
}

// What Parse refuses by itself, without regard to other fields, the schema refuses too.
func TestSchemaRefuses(t *testing.T) {
	schema := readSchema(t)
	for _, text := range []string{"windw: {time: 1s}", "window: {tme: 1s}", "shards: many", "train: {encoder: oracle}",
		"window: {time: soon}", "window: {bytes: 5 parsecs}", "ingest: {undirected: perhaps}", "kafka: [a, b]",
		"evaluate: {probe_rates: x}", "ingest: {nodes: {text: {a: b}}}", "refresh: {min_changes: few}"} {
		if _, err := config.Parse([]byte(text), os.LookupEnv); err == nil {
			t.Fatalf("%s is valid", text)
		}
		if faults := check(t, schema, readAsJSON(t, []byte(text)), ""); len(faults) == 0 {
			t.Errorf("%s fits the schema", text)
		}
	}
	for _, text := range []string{"shards: ${SHARDS:-4}", `window: {time: "${T:-3s}", bytes: 4194304}`, "window:",
		"kafka: {brokers: a:9092}", "ingest: {nodes: {label: x}}", `shards: "4"`, `ingest: {undirected: "true"}`,
		"compaction: {history: 0s}", "pipeline: 7", "featurize: {memory_limit: 1.5 GiB}", "window: {time: 1h30m}"} {
		if _, err := config.Parse([]byte(text), os.LookupEnv); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if faults := check(t, schema, readAsJSON(t, []byte(text)), ""); len(faults) > 0 {
			t.Errorf("%s: %v", text, faults)
		}
	}
}

// Every field has its default, and the words of the example.
func TestSchemaDescribesFields(t *testing.T) {
	schema := readSchema(t)
	described := 0
	c := config.Default()
	for _, f := range c.Fields() {
		at := schema
		for name := range strings.SplitSeq(f.Path, ".") {
			at = at["properties"].(map[string]any)[name].(map[string]any)
		}
		if at["x-effect"] != string(f.Effect) {
			t.Errorf("%s: x-effect is %v, want %s", f.Path, at["x-effect"], f.Effect)
		}
		if at["description"] != nil {
			described++
		}
		secret := strings.Contains(f.Path, "password") || strings.Contains(f.Path, "_key") ||
			strings.HasSuffix(f.Path, ".token") || f.Path == "sinks.pgvector.url"
		if _, ok := at["default"]; !ok && !secret {
			t.Errorf("%s has no default", f.Path)
		}
	}
	if described < len(c.Fields())*2/3 {
		t.Errorf("%d of %d fields are described", described, len(c.Fields()))
	}
	for path, want := range map[string]string{
		"compaction.history": "how long manifests stay at least, before they are folded and removed up to the oldest cut " +
			"of the generations in the store; 0s = for ever",
		"shards": "Number of shards = partitions of the topics. Fixed at creation.",
		"ingest.nodes.format": "json; avro or protobuf with a schema registry; debezium: change events of a table (JSON, " +
			"or Avro with a schema " +
			"registry), whose fields below are those of the row.",
		"refresh.quality_gate": "if the encoder is worse than text alone on held-out data: warn, block (the previous " +
			"generation keeps serving) or off",
	} {
		at := schema
		for name := range strings.SplitSeq(path, ".") {
			at = at["properties"].(map[string]any)[name].(map[string]any)
		}
		if at["description"] != want {
			t.Errorf("%s: %q, want %q", path, at["description"], want)
		}
	}
}
