package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/config"
)

func TestSet(t *testing.T) {
	t.Setenv("TEST_SECRET", "s3cret,with-a-comma")
	c := config.Default()
	if err := c.Set("window.time=2s", "ingest.nodes.text=title, body", "kafka.brokers=[a:9092,b:9092]",
		"evaluate.probe_rates=0.1,0.5", "http.token=${TEST_SECRET}", "ingest.nodes.label=section", "kafka.group=",
		"window.bytes=3MiB", "ingest.undirected=false"); err != nil {
		t.Fatal(err)
	}
	if c.Window.Time != 2*time.Second || !slices.Equal(c.Ingest.Nodes.Text, []string{"title", "body"}) ||
		!slices.Equal(c.Kafka.Brokers, []string{"a:9092", "b:9092"}) ||
		!slices.Equal(c.Evaluate.ProbeRates, []float64{0.1, 0.5}) || string(c.HTTP.Token) != "s3cret,with-a-comma" ||
		c.Ingest.Nodes.Class != "section" || c.Window.Bytes != 3*config.MiB || c.Ingest.Undirected {
		t.Errorf("%+v", c)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSetSaysWhatIsWrongAndShowsNoValue(t *testing.T) {
	c := config.Default()
	before := c.Fields()
	err := c.Set("http.tokn=hunter2", "hunter2", "window=hunter2", "shards=hunter2", "http.token=${NO_SUCH_VARIABLE}",
		"zzzzzzzzzzzz=1")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"http.tokn: unknown field; did you mean http.token?", "must be a field, =",
		"window: unknown field; it is a section with the fields bytes, changes, compression, time",
		"shards: must be a whole number", "NO_SUCH_VARIABLE is not set", "***: unknown field; 'giantstream"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a value is shown: %v", err)
	}
	if !slices.Equal(before, c.Fields()) {
		t.Error("faulty assignments changed something")
	}
}

// A file that an assignment corrects is valid, and one that an assignment breaks is not blamed by its line.
func TestLoadAppliesAssignmentsBeforeItValidates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte("shards: 0\nhttp: {listen: nowhere, token: hunter2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, []string{"shards=3", "http.listen="})
	if err != nil || c.Shards != 3 {
		t.Errorf("%d shards, %v", c.Shards, err)
	}
	if _, err = config.Load(path, []string{"shards=-1", "http.listen="}); err == nil ||
		!strings.Contains(err.Error(), "p.yaml: shards: must be between") {
		t.Error(err)
	}
	// The token is not in the line that is quoted.
	if _, err = config.Load(path, nil); err == nil || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "http.listen") {
		t.Error(err)
	}
}

// The fields of a list of sections are those of its sections, and a change of a secret in one is a change.
func TestFieldsOfAListOfSections(t *testing.T) {
	c := config.Default()
	c.HTTP.Tokens = []config.Bearer{{Name: "shop", Token: "hunter2", Scopes: config.List{"read", "embed"}, Rate: 0.5}}
	other := c
	other.HTTP.Tokens = []config.Bearer{c.HTTP.Tokens[0]}
	other.HTTP.Tokens[0].Token = "hunter3"
	text := "{name: shop, token: ***, scopes: [read, embed], rate: 0.5, concurrent: 0}"
	want := []config.Change{{Path: "http.tokens", From: text, To: text + " (another)", Effect: config.Live}}
	if got := config.Diff(&c, &other); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if err := c.Set("http.tokens=[hunter2]"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestFieldsNamesEveryFieldAndNoSecret(t *testing.T) {
	c := config.Default()
	c.HTTP.Token = "hunter2"
	values := map[string]string{}
	for _, f := range c.Fields() {
		values[f.Path] = f.Value
	}
	for path, want := range map[string]string{"http.token": "***", "s3.secret_key": "", "shards": "8",
		"ingest.nodes.text": "text", "window.time": "1s", "featurize.pifa.weighting": "sum"} {
		if got, ok := values[path]; !ok || got != want {
			t.Errorf("%s is %q (%v), want %q", path, got, ok, want)
		}
	}
}
